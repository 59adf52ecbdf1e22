#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/csv_rows.h"
#include "stepcast/base/statistics.h"
#include "stepcast/base/text.h"

#include "lab/suites.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

struct HybridRow {
  std::string name, model, gpu;
  double step_ms = 0, rate = 0;  // rate: tokens per second and GPU
  PredictRequest request;
};

struct HybridStep {
  HybridRow row;
  Forecast forecast;
  double utilisation = 0;  // measured
};

// The first config file by name for a model: "Nemotron_3_Nano" is "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16_config.json".
Result<std::string> config_of_model(const fs::path& folder, std::string model) {
  std::ranges::replace(model, '_', '-');
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string().find(model) != std::string::npos)
      found.push_back(entry.path().string());
  if (found.empty()) return Error::at(folder.string(), "", fmt::format("holds no config.json of {}", model));
  return *std::ranges::min_element(found);
}

Result<HybridRow> hybrid_row_of(const CsvRows& rows, const fs::path& data) {
  HybridRow row{.name = fmt::format("{} {} {} {}", rows.cell("release"), rows.cell("model"), rows.cell("gpu"),
                                    rows.cell("precision")),
                .model = std::string{rows.cell("model")},
                .gpu = std::string{rows.cell("gpu")}};
  STEPCAST_ASSIGN(row.step_ms, rows.number("step_time_ms", 0));
  STEPCAST_ASSIGN(row.rate, rows.number("tokens_per_s_per_gpu", 0));
  Job& job = row.request.job;
  STEPCAST_ASSIGN(job.model, config_of_model(data / "model_configs", row.model));
  STEPCAST_ASSIGN(const std::int64_t gpus, rows.extent("n_gpus"));
  job.n_gpus = gpus;
  job.framework = Framework::nemo;
  JobSettings& s = job.settings;
  STEPCAST_TRY(read_sizes(rows, {{"global_batch_sequences", &s.global_batch_sequences},
                                 {"micro_batch_sequences", &s.micro_batch_sequences},
                                 {"seq_len_tokens", &s.seq_len_tokens},
                                 {"tp", &s.tensor},
                                 {"pp", &s.pipeline},
                                 {"cp", &s.context},
                                 {"ep", &s.expert}}));
  if (rows.cell("vp") != "1") STEPCAST_TRY(read_sizes(rows, {{"vp", &s.virtual_stages}}));
  s.sequence_parallel = *s.tensor > 1;
  s.expert_tensor = 1;
  s.dtype = DType::bf16;
  const std::string precision = lower(rows.cell("precision"));
  s.fp4 = precision.find("fp4") != std::string::npos;
  s.fp8 = !*s.fp4 && precision.find("fp8") != std::string::npos;
  if (*s.fp8) s.fp8_gather_weights = true;
  s.distributed_optimizer = true;
  s.dispatcher = TokenDispatcher::deepep;  // "flex" in recipes
  s.flex_dispatcher = TokenDispatcher::hybridep;
  row.request.platform = "dgx-" + lower(rows.cell("gpu"));
  return row;
}

// The forecast with the first recomputation setting of recipes that fits.
Result<HybridStep> hybrid_step_of(const Session& session, HybridRow row) {
  constexpr std::array<std::string_view, 4> kModules = {"", "moe_act layernorm", "moe layernorm", "all"};
  HybridStep step;
  for (const std::string_view modules : kModules) {
    JobSettings& s = row.request.job.settings;
    s.recompute.reset();
    s.recompute_modules.reset();
    if (modules == "all") {
      s.recompute = Recompute::full;
    } else if (!modules.empty()) {
      s.recompute = Recompute::selective;
      s.recompute_modules = std::string{modules};
    }
    STEPCAST_ASSIGN(step.forecast, session.predict(row.request));
    if (step.forecast.memory && step.forecast.memory->verdict == "fits") break;
  }
  const double peak_share = step.forecast.throughput.mfu.value_or(0);
  step.utilisation = peak_share * step.forecast.step_time_ms / row.step_ms;
  step.row = std::move(row);
  return step;
}

void add_hybrid_scores(const std::vector<HybridStep>& steps, SuiteResult& result) {
  TestScore ours{.test = "hybrid_steps", .protocol = "shipped", .unit = "ms"};
  TestScore utilisation{.test = "hybrid_utilisation", .protocol = "shipped", .unit = "ms"};
  TestScore same{.test = "hybrid_same_model", .protocol = "shipped", .unit = "ms"};
  for (const HybridStep& step : steps) {
    const HybridRow& row = step.row;
    ours.set_of(row.model).rows.push_back(scored_step(row.name, row.step_ms, step.forecast));
    std::vector<double> of_others, of_model;
    for (const HybridStep& other : steps) {
      if (other.row.model != row.model) of_others.push_back(other.utilisation);
      if (&other != &step && other.row.model == row.model && other.row.gpu == row.gpu)
        of_model.push_back(other.row.rate);
    }
    if (!of_others.empty()) {
      utilisation.set_of(row.model).rows.push_back(
          {.row = row.name,
           .measured = row.step_ms,
           .predicted = row.step_ms * step.utilisation / median(of_others)});
    }
    if (!of_model.empty()) {
      same.set_of(row.model).rows.push_back(
          {.row = row.name, .measured = row.step_ms, .predicted = row.step_ms * row.rate / median(of_model)});
    }
  }
  for (SetScore& set : ours.sets) {
    double too_large = 0;
    for (const HybridStep& step : steps)
      too_large += step.row.model == set.set && !step.forecast.fits() ? 1 : 0;
    set.extras = {{"said_not_to_fit", too_large, ExtraMetric::Over::sum}};
  }
  result.add(finished({&ours, &utilisation, &same}));
}

}  // namespace

Result<SuiteResult> validate_hybrid(const fs::path& data, const SuiteOptions& /*options*/) {
  SuiteResult result{.suite = "hybrid"};
  const Session session;
  std::vector<HybridStep> steps;
  STEPCAST_TRY(each_row(data / "hybrid_steps.csv", [&](const CsvRows& rows) -> Status {
    Result<HybridRow> row = hybrid_row_of(rows, data);
    Result<HybridStep> step =
        row.ok() ? hybrid_step_of(session, std::move(*row)) : Result<HybridStep>{row.error()};
    if (step.ok()) {
      steps.push_back(std::move(*step));
    } else {
      result.skipped.push_back(
          {fmt::format("line {} {}", rows.line(), rows.cell("model")), step.error().message()});
    }
    return Ok{};
  }));
  add_hybrid_scores(steps, result);
  return result;
}

}  // namespace stepcast

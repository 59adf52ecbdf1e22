#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/csv_rows.h"
#include "stepcast/base/statistics.h"

#include "lab/suites.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<std::string_view, std::string_view> kModels[] = {{"DeepSeek V3 671B", "deepseek-v3"},
                                                                     {"Kimi K2", "kimi-k2"},
                                                                     {"Qwen3 MoE 30B", "qwen3-30b-a3b"},
                                                                     {"GPT-OSS 20B", "gpt-oss-20b"},
                                                                     {"GPT-OSS 120B", "gpt-oss-120b"}};

struct FsdpRow {
  std::string name;
  double step_ms = 0, tflops = 0;  // model FLOPs rate of a GPU
  PredictRequest request;
};

Result<FsdpRow> fsdp_row_of(const CsvRows& rows) {
  FsdpRow row{.name =
                  fmt::format("line {} {} {} GPUs", rows.line(), rows.cell("model"), rows.cell("n_gpus"))};
  STEPCAST_ASSIGN(const double step_s, rows.number("step_s", 0));
  row.step_ms = step_s * 1e3;
  STEPCAST_ASSIGN(row.tflops, rows.number("model_tflops_per_gpu", 0));
  Job& job = row.request.job;
  for (const auto& [printed, name] : kModels)
    if (rows.cell("model") == printed) job.model = std::string{name};
  if (job.model.empty()) return Error{fmt::format("no preset of `{}`", rows.cell("model"))};
  job.framework = Framework::automodel;
  STEPCAST_ASSIGN(const std::int64_t gpus, rows.extent("n_gpus"));
  job.n_gpus = gpus;
  JobSettings& s = job.settings;
  STEPCAST_TRY(read_sizes(rows, {{"global_batch_sequences", &s.global_batch_sequences},
                                 {"micro_batch_sequences", &s.micro_batch_sequences},
                                 {"seq_len_tokens", &s.seq_len_tokens},
                                 {"pipeline_parallel", &s.pipeline}}));
  if (*s.pipeline > 1) STEPCAST_TRY(read_sizes(rows, {{"virtual_stages", &s.virtual_stages}}));
  s.expert = gpus;
  if (!rows.cell("expert_parallel").empty()) STEPCAST_TRY(read_sizes(rows, {{"expert_parallel", &s.expert}}));
  s.dtype = DType::bf16;
  row.request.open_layout = OpenLayout::as_said;  // the layout of the run
  return row;
}

// Forecasts without and with full recomputation, because publications do not print which one ran.
struct FsdpForecasts {
  Forecast faster;  // the faster one that fits; of both if none fits
  Forecast closer;  // the one closer to the measured time
};
Result<FsdpForecasts> forecasts_of(const Session& session, FsdpRow row) {
  row.request.job.settings.recompute = Recompute::none;
  STEPCAST_ASSIGN(Forecast none, session.predict(row.request));
  row.request.job.settings.recompute = Recompute::full;
  STEPCAST_ASSIGN(Forecast full, session.predict(row.request));
  const auto off = [&](const Forecast& f) { return std::abs(std::log(f.step_time_ms / row.step_ms)); };
  const auto does_not_fit = [](const Forecast& f) { return f.memory && f.memory->verdict == "does not fit"; };
  const auto rank = [&](const Forecast& f) { return std::pair{does_not_fit(f), f.step_time_ms}; };
  return FsdpForecasts{rank(none) <= rank(full) ? none : full, off(none) <= off(full) ? none : full};
}

}  // namespace

Result<SuiteResult> validate_fsdp_experts(const fs::path& data, const SuiteOptions& /*options*/) {
  SuiteResult result{.suite = "fsdp_experts"};
  std::vector<FsdpRow> rows;
  STEPCAST_TRY(each_row(data / "fsdp_expert_steps.csv", [&](const CsvRows& csv) -> Status {
    Result<FsdpRow> row = fsdp_row_of(csv);
    if (row.ok())
      rows.push_back(std::move(*row));
    else
      result.skipped.push_back({fmt::format("line {}", csv.line()), row.error().message()});
    return Ok{};
  }));
  TestScore ours{.test = "fsdp_experts", .protocol = "shipped", .unit = "ms"};
  TestScore constant{.test = "fsdp_experts_constant", .protocol = "shipped", .unit = "ms"};
  TestScore closer{.test = "fsdp_experts_closer", .protocol = "shipped", .unit = "ms"};
  SetScore set{.set = "automodel"}, close{.set = "automodel"}, rate{.set = "automodel"};
  const Session session;
  for (const FsdpRow& row : rows) {
    const Result<FsdpForecasts> f = forecasts_of(session, row);
    if (!f.ok()) {
      result.skipped.push_back({row.name, f.error().message()});
      continue;
    }
    set.rows.push_back(scored_step(row.name, row.step_ms, f->faster));
    close.rows.push_back(scored_step(row.name, row.step_ms, f->closer));
    std::vector<double> others;
    for (const FsdpRow& other : rows)
      if (&other != &row) others.push_back(other.tflops);
    rate.rows.push_back(
        {.row = row.name, .measured = row.step_ms, .predicted = row.step_ms * row.tflops / median(others)});
  }
  ours.sets.push_back(std::move(set));
  closer.sets.push_back(std::move(close));
  constant.sets.push_back(std::move(rate));
  result.add(finished({&ours, &closer, &constant}));
  return result;
}

}  // namespace stepcast

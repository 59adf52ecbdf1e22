#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/csv_rows.h"
#include "stepcast/base/statistics.h"
#include "stepcast/cost/step_factors.h"
#include "stepcast/operation/kernel_class.h"
#include "stepcast/platform/platform_file.h"

#include "lab/suites.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<std::string_view, std::string_view> kChips[] = {
    {"v5p", "tpu-v5p"}, {"v6e", "tpu-v6e"}, {"TPU7x", "tpu7x"}};
// Names of models in the recipes that differ from those of presets.
constexpr std::pair<std::string_view, std::string_view> kModels[] = {
    {"llama4-maverick-17b-128e", "llama-4-maverick"}};
// Model settings of a recipe that its row does not state: mixtral_8x7b_dropped of MaxText's benchmarks.
constexpr std::pair<std::string_view, std::string_view> kMore[] = {
    {"mixtral-8x7b", "capacity_factor: 1.25\nsparse_matmul: false\n"}};

struct TpuRow {
  std::string name, chip;
  bool experts = false;
  double step_s = 0;
  PredictRequest request;
};

template <std::size_t N>
std::string_view said(const std::pair<std::string_view, std::string_view> (&table)[N], std::string_view key,
                      std::string_view otherwise) {
  for (const auto& [name, value] : table)
    if (name == key) return value;
  return otherwise;
}

// Converts "a=b c=d" to lines of YAML.
std::string yaml_lines(std::string_view words) {
  std::string lines;
  for (const char c : words)
    if (c == '=')
      lines += ": ";
    else
      lines += c == ' ' ? '\n' : c;
  return lines + "\n";
}

// Rematerialisation as in the script of the recipe: "custom: a=device b=offload", or the name of a policy.
std::string remat_lines(std::string_view remat) {
  constexpr std::string_view kCustom = "custom: ";
  if (remat.starts_with(kCustom)) return "remat_policy: custom\n" + yaml_lines(remat.substr(kCustom.size()));
  return fmt::format("remat_policy: {}\n", remat);
}

Result<TpuRow> tpu_row_of(const CsvRows& rows) {
  TpuRow row{.name = fmt::format("{} {} chips", rows.cell("model"), rows.cell("n_chips")),
             .chip = std::string{rows.cell("tpu")},
             .experts = rows.cell("moe") == "1"};
  if (rows.cell("note").find("diffusion") != std::string_view::npos) return Error{"a diffusion model"};
  if (rows.cell("ici_parallelism").empty()) return Error{"neither layout nor recomputation is stated"};
  STEPCAST_ASSIGN(row.step_s, rows.number("step_s", 0));
  STEPCAST_ASSIGN(const std::int64_t devices, rows.extent("n_devices"));
  STEPCAST_ASSIGN(const std::int64_t tokens, rows.extent("global_batch_tokens"));
  std::int64_t slices = 1;
  if (!rows.cell("slices").empty()) {
    STEPCAST_ASSIGN(slices, rows.extent("slices"));
  }
  const bool has_length = !rows.cell("seq_len_tokens").empty();
  const double per_device = static_cast<double>(tokens) / static_cast<double>(devices);
  double length = 0;
  if (has_length) {
    STEPCAST_ASSIGN(length, rows.number("seq_len_tokens", 0));
  } else {
    STEPCAST_ASSIGN(const double sequences, rows.number("per_device_batch", 0));
    length = per_device / sequences;
  }
  const std::string_view model = rows.cell("model");
  std::string text = fmt::format(
      "model_name: {}\nper_device_batch_size: {}\nmax_target_length: {:.0f}\ndtype: bfloat16\n{}{}{}{}",
      said(kModels, model, model), per_device / length, length, yaml_lines(rows.cell("ici_parallelism")),
      yaml_lines(rows.cell("dcn_parallelism")), said(kMore, model, ""), remat_lines(rows.cell("remat")));
  row.request.platform = std::string{said(kChips, row.chip, row.chip)};
  row.request.job.config = ConfigText{std::move(text), row.name};
  row.request.job.n_gpus = devices;
  row.request.job.gpus_per_node = devices / slices;
  return row;
}

// The step of a row, and the time of its GEMMs without a correction.
struct ScoredStep {
  TpuRow row;
  Forecast forecast;
  double gemm_s = 0, other_s = 0;
  double utilisation = 0;  // measured

  // The factor on GEMMs with which the forecast would equal the measured step.
  [[nodiscard]] double gemm_factor() const { return (row.step_s - other_s) / gemm_s; }
};

Result<ScoredStep> step_of_row(const Session& session, TpuRow row) {
  STEPCAST_ASSIGN(Forecast forecast, session.predict(row.request));
  STEPCAST_ASSIGN(const Platform platform, load_platform(row.request.platform));
  StepFactors shipped;
  if (const ModelRecord* record = platform.find_model(kStepFactorsKind)) {
    STEPCAST_ASSIGN(shipped, StepFactors::read(record->parameters));
  }
  ScoredStep step;
  for (const NamedTime& part : forecast.critical().computation_by_class_ms)
    if (part.key == to_string(KernelClass::gemm)) step.gemm_s = part.time_ms / 1000 / shipped.gemm;
  step.other_s = forecast.step_time_ms / 1000 - step.gemm_s * shipped.gemm;
  step.utilisation = forecast.throughput.mfu.value_or(0) * forecast.step_time_ms / 1000 / row.step_s;
  step.row = std::move(row);
  step.forecast = std::move(forecast);
  return step;
}

// The values of the steps for which `counts` returns true.
template <class Counts, class Value>
std::vector<double> values_of(const std::vector<ScoredStep>& steps, const Counts& counts,
                              const Value& value) {
  std::vector<double> values;
  for (const ScoredStep& step : steps)
    if (counts(step)) values.push_back(value(step));
  return values;
}

void add_tpu_scores(const std::vector<ScoredStep>& steps, SuiteResult& result) {
  TestScore dense{.test = "dense", .protocol = "refit", .unit = "s"};
  TestScore experts{.test = "experts", .protocol = "refit", .unit = "s"};
  TestScore dense_trivial{.test = "dense_utilisation", .protocol = "shipped", .unit = "s"};
  TestScore experts_trivial{.test = "experts_utilisation", .protocol = "shipped", .unit = "s"};
  const auto all = values_of(
      steps, [](const ScoredStep& s) { return !s.row.experts; },
      [](const ScoredStep& s) { return s.gemm_factor(); });
  for (const ScoredStep& step : steps) {
    const TpuRow& row = step.row;
    const auto of_others = values_of(
        steps, [&](const ScoredStep& s) { return !s.row.experts && s.row.chip != row.chip; },
        [](const ScoredStep& s) { return s.gemm_factor(); });
    if (of_others.empty()) {
      result.skipped.push_back({row.name, "no other chip has a row to fit GEMMs to"});
      continue;
    }
    const double factor = median(of_others), step_s = step.other_s + factor * step.gemm_s;
    const Forecast& f = step.forecast;
    const ScoredRow shipped{.row = row.name,
                            .measured = row.step_s,
                            .predicted = f.step_time_ms / 1000,
                            .p10 = f.step_time_p10_ms / 1000,
                            .p90 = f.step_time_p90_ms / 1000};
    SetScore& set = (row.experts ? experts : dense).set_of(row.chip);
    set.n_fit = of_others.size();
    set.extras = {{"gemm_factor", factor, ExtraMetric::Over::mean},
                  {"all_gemm_factor", all.empty() ? factor : median(all), ExtraMetric::Over::mean}};
    set.rows.push_back(scaled(shipped, step_s / shipped.predicted));
    const auto utilisations = values_of(
        steps, [&](const ScoredStep& s) { return &s != &step && s.row.chip == row.chip; },
        [](const ScoredStep& s) { return s.utilisation; });
    if (utilisations.empty()) continue;
    (row.experts ? experts_trivial : dense_trivial)
        .set_of(row.chip)
        .rows.push_back({.row = row.name,
                         .measured = row.step_s,
                         .predicted = row.step_s * step.utilisation / median(utilisations)});
  }
  result.add(finished({&dense, &experts, &dense_trivial, &experts_trivial}));
}

}  // namespace

Result<SuiteResult> validate_tpu(const fs::path& data, const SuiteOptions& /*options*/) {
  SuiteResult result{.suite = "tpu"};
  const Session session;
  std::vector<ScoredStep> steps;
  STEPCAST_TRY(each_row(data / "tpu_steps.csv", [&](const CsvRows& rows) -> Status {
    Result<TpuRow> row = tpu_row_of(rows);
    Result<ScoredStep> step =
        row.ok() ? step_of_row(session, std::move(*row)) : Result<ScoredStep>{row.error()};
    if (step.ok()) {
      steps.push_back(std::move(*step));
    } else {
      result.skipped.push_back({fmt::format("line {} {} {} {}", rows.line(), rows.cell("model"),
                                            rows.cell("tpu"), rows.cell("n_chips")),
                                step.error().message()});
    }
    return Ok{};
  }));
  add_tpu_scores(steps, result);
  return result;
}

}  // namespace stepcast

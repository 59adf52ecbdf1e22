#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/statistics.h"
#include "stepcast/describe/job.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/step_model.h"

#include "lab/recorded_job.h"
#include "lab/shipped_data.h"
#include "lab/sibling_pairs.h"
#include "lab/suites.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// The GPU decides a step whose p10 and p90 lie no farther apart than this of its median; where the host does, they
// lie 8 to 65 % apart.
constexpr double kDecidedByGpu = 0.02;
constexpr std::pair<std::string_view, std::string_view> kPresets[] = {
    {"bert_base", "bert-base"}, {"gpt2", "gpt2"}, {"llama_1b", "llama-3.2-1b"}, {"resnet50", "resnet-50"}};

struct CollectedStep {
  std::string name, gpu;
  double measured_ms = 0;
  Job job;
};

// What the collector measured of the row's model, as it is described.
Result<Job> job_of(const CsvRows& rows, std::string_view preset) {
  Job job;
  job.model = preset;
  job.n_gpus = 1;
  job.framework = Framework::pytorch;
  JobSettings& s = job.settings;
  s.dtype = parse_dtype(rows.cell("dtype"));
  s.optimizer = rows.cell("optimizer") == "momentum_sgd" ? OptimizerKind::momentum_sgd : OptimizerKind::adamw;
  s.clip_gradients = 0;
  s.attention = AttentionMethod::flash;  // scaled_dot_product_attention
  STEPCAST_ASSIGN(s.micro_batch_sequences, rows.extent("batch"));
  s.global_batch_sequences = s.micro_batch_sequences;
  if (!rows.cell("seq_len_tokens").empty()) {
    STEPCAST_ASSIGN(s.seq_len_tokens, rows.extent("seq_len_tokens"));
  }
  if (preset == "llama-3.2-1b") s.tied_embeddings = false;
  return job;
}

// The steps of a folder that the GPU decides and a description can say.
Result<std::vector<CollectedStep>> read_steps(const fs::path& file, std::vector<Skipped>& skipped) {
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, file.generic_string()));
  std::vector<CollectedStep> steps;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return steps;
    CollectedStep step{.name = std::string{rows.cell("case")}, .gpu = std::string{rows.cell("gpu")}};
    STEPCAST_ASSIGN(step.measured_ms, rows.number("measured_ms", 1e-6));
    STEPCAST_ASSIGN(const double low, rows.number("measured_ms_p10", 1e-6));
    STEPCAST_ASSIGN(const double high, rows.number("measured_ms_p90", 1e-6));
    const auto preset =
        std::ranges::find(kPresets, rows.cell("model"), [](const auto& p) { return p.first; });
    std::string_view why;
    if (high - low > kDecidedByGpu * step.measured_ms)
      why = "the host decides the step: p10 and p90 lie more than 2 % of it apart";
    else if (preset == std::end(kPresets))
      why = "no preset";
    else if (preset->first == "resnet50" && rows.cell("dtype") == "fp32")
      why = "convolutions in fp32 without TF32, which no setting says";
    if (!why.empty()) {
      skipped.push_back({fmt::format("{} {}", step.gpu, step.name), std::string{why}});
      continue;
    }
    STEPCAST_ASSIGN(step.job, job_of(rows, preset->second));
    steps.push_back(std::move(step));
  }
}

ScoredRow row_of_step(const CollectedStep& step, double predicted_ms) {
  return {.row = step.name, .measured = step.measured_ms, .predicted = predicted_ms};
}

// Steps by description; beside them the FLOPs of the model at the median share of the peak that the other steps in the type
// reach on this GPU, and the measured step of the other GPU.
Status score_steps(const std::vector<CollectedStep>& steps, SuiteResult& result) {
  TestScore ours{.test = "described_steps", .protocol = "shipped", .unit = "ms"};
  TestScore trivial{.test = "described_steps_utilisation", .protocol = "shipped", .unit = "ms"};
  TestScore unchanged{.test = "steps_of_other_gpu", .protocol = "recorded", .unit = "ms"};
  std::vector<double> ideal_ms;
  for (const CollectedStep& step : steps) {
    STEPCAST_ASSIGN(const Platform platform, load_device(step.gpu));
    STEPCAST_ASSIGN(const ResolvedJob resolved, resolve(step.job));
    StepModel model{platform};
    STEPCAST_ASSIGN(const StepPrediction p, model.predict(resolved.model, resolved.layout));
    ScoredRow row = row_of_step(step, p.step.time.value() / 1e3);
    row.p10 = p.step.p10.value() / 1e3;
    row.p90 = p.step.p90.value() / 1e3;
    ours.set_of(step.gpu).rows.push_back(std::move(row));
    ideal_ms.push_back(p.peak && p.model_flops > 0 ? p.model_flops / p.peak->value() * 1e3 : 0);
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::vector<double> shares;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      if (steps[k].name == steps[i].name && steps[k].gpu != steps[i].gpu)
        unchanged.set_of(steps[i].gpu).rows.push_back(row_of_step(steps[i], steps[k].measured_ms));
      if (k != i && steps[k].gpu == steps[i].gpu && ideal_ms[k] > 0 &&
          steps[k].job.settings.dtype == steps[i].job.settings.dtype)
        shares.push_back(ideal_ms[k] / steps[k].measured_ms);
    }
    if (ideal_ms[i] > 0 && !shares.empty())
      trivial.set_of(steps[i].gpu).rows.push_back(row_of_step(steps[i], ideal_ms[i] / median(shares)));
  }
  result.add(finished({&ours, &trivial, &unchanged}));
  return Ok{};
}

// Folders of the collector in `data` or, if there is none, in the source tree.
Result<std::vector<fs::path>> collected_in(const fs::path& data) {
  std::vector<fs::path> places{data};
  if (const auto readme = shipped_data_file("measured/README.md")) places.push_back(readme->parent_path());
  for (const fs::path& place : places) {
    STEPCAST_ASSIGN(std::vector<fs::path> folders, folders_of(place));
    std::erase_if(folders, [](const fs::path& folder) { return !fs::exists(folder / "steps.csv"); });
    std::erase_if(folders, [](const fs::path& folder) { return !fs::exists(folder / "kernels.csv.gz"); });
    if (!folders.empty()) return folders;
  }
  return Error::at(data.string(), "holds no folder of the collector")
      .expected("folders with kernels.csv.gz, steps.csv and traces (docs/collector.md)");
}

}  // namespace

Result<SuiteResult> validate_measured(const fs::path& data, const SuiteOptions& options) {
  SuiteResult result{.suite = "measured"};
  STEPCAST_ASSIGN(const std::vector<fs::path> folders, collected_in(data));
  std::vector<fs::path> kernels;
  std::vector<CollectedStep> steps;
  for (const fs::path& folder : folders) {
    kernels.push_back(folder / "kernels.csv.gz");
    STEPCAST_ASSIGN(std::vector<CollectedStep> of_folder, read_steps(folder / "steps.csv", result.skipped));
    std::ranges::move(of_folder, std::back_inserter(steps));
  }
  STEPCAST_ASSIGN(const KernelMeasurements rows, read_kernel_measurements(kernels));
  STEPCAST_ASSIGN(std::vector<TestScore> pairs, score_sibling_pairs(rows.rows, {}, options));
  constexpr std::string_view kPairs = "sibling_pairs";
  for (TestScore& test : pairs) test.test.replace(0, kPairs.size(), "kernels_of_other_gpu");
  result.add(std::move(pairs));
  STEPCAST_TRY(score_steps(steps, result));
  STEPCAST_ASSIGN(SuiteResult recorded, validate_predict(folders.front().parent_path(), options));
  for (TestScore& test : recorded.tests)
    if (test.test.starts_with("cross_device") || test.test.starts_with("gpu_active"))
      result.add(std::move(test));
  return result;
}

}  // namespace stepcast

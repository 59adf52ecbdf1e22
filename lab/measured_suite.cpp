#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/file.h"
#include "stepcast/base/json_value.h"
#include "stepcast/base/statistics.h"
#include "stepcast/describe/job.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/recommend/dlrm_job.h"
#include "stepcast/recommend/dlrm_step.h"
#include "stepcast/recommend/sharders.h"

#include "lab/collected_steps.h"
#include "lab/retyped_steps.h"
#include "lab/sibling_pairs.h"
#include "lab/suites.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<std::string_view, std::string_view> kPresets[] = {{"bert_base", "bert-base"},
                                                                      {"gpt2", "gpt2"},
                                                                      {"llama_1b", "llama-3.2-1b"},
                                                                      {"resnet50", "resnet-50"},
                                                                      {"xlnet_base", "xlnet-base"}};

// The description of a collected model; nullopt if it is not a preset.
std::optional<Job> job_of(const CollectedStep& step) {
  const auto preset = std::ranges::find(kPresets, step.model, [](const auto& p) { return p.first; });
  if (preset == std::end(kPresets)) return std::nullopt;
  Job job;
  job.model = preset->second;
  job.n_gpus = 1;
  job.framework = Framework::pytorch;
  JobSettings& s = job.settings;
  s.dtype = step.dtype;
  s.optimizer = step.optimizer == "momentum_sgd" ? OptimizerKind::momentum_sgd : OptimizerKind::adamw;
  s.clip_gradients = 0;
  s.attention = AttentionMethod::flash;  // scaled_dot_product_attention
  s.fp32_convolutions = true;            // the collector turns TF32 off
  s.micro_batch_sequences = s.global_batch_sequences = step.batch;
  if (step.seq_len_tokens > 0) s.seq_len_tokens = step.seq_len_tokens;
  if (preset->first == "llama_1b") s.tied_embeddings = false;
  if (preset->first == "xlnet_base") s.attention = AttentionMethod::unfused;
  return job;
}

// A DLRM of the collector, from the sizes in the description of its step.
Result<DlrmJob> dlrm_of(const CollectedStep& step) {
  STEPCAST_ASSIGN(const std::string text, read_file(step.description));
  STEPCAST_ASSIGN(const JsonValue file, parse_json(text, step.description.generic_string()));
  const auto number = [](const JsonValue& object, std::string_view key) {
    const JsonValue* value = object.find(key);
    return value != nullptr && value->is_number() ? value->number() : 0;
  };
  const auto widths = [&](std::string_view key, std::size_t first) {
    std::vector<std::int64_t> out;
    const JsonValue* list = file.find(key);
    if (list == nullptr || !list->is_array()) return out;
    for (std::size_t i = first; i < list->items().size(); ++i)
      out.push_back(static_cast<std::int64_t>(list->items()[i].number()));
    return out;
  };
  DlrmJob job;
  job.model.name = step.model;
  job.model.bottom_mlp = widths("bottom_mlp", 1);  // the first is the input
  job.model.top_mlp = widths("top_mlp", 0);
  const JsonValue* tables = file.find("tables");
  if (tables == nullptr || !tables->is_array()) return Error::at(step.description.string(), "has no tables");
  for (const JsonValue& table : tables->items()) {
    EmbeddingTable& added = job.model.tables.emplace_back();
    added.name = fmt::format("t{}", job.model.tables.size());
    added.rows = static_cast<std::int64_t>(number(table, "rows"));
    added.dim = static_cast<std::int64_t>(number(file, "embedding_dim"));
    added.pooling = number(table, "pooling");
  }
  job.training.stack = DlrmStack::pytorch;
  job.training.global_batch = step.batch;
  job.training.dtype = step.dtype;
  return job;
}

Result<Estimate> described_dlrm(const CollectedStep& step, const Platform& platform) {
  STEPCAST_ASSIGN(const DlrmJob job, dlrm_of(step));
  STEPCAST_ASSIGN(DlrmStepModel steps, DlrmStepModel::create(job.model, job.training, platform, 1));
  STEPCAST_ASSIGN(const DlrmStep made, steps.predict(usual_sharding(steps)));
  return made.time;
}

ScoredRow row_of_step(const CollectedStep& step, double predicted_ms) {
  return {.row = step.name, .measured = step.ms, .predicted = predicted_ms};
}

struct Described {
  const CollectedStep* step = nullptr;
  double ideal_ms = 0;  // FLOPs of the step at the peak; 0: not known
};

// Scores steps by description, with the host times of the machine of the other GPU. Baseline of all steps: the measured step
// of the other GPU. Baseline of GPU-bound steps: the FLOPs of the model at the median share of the peak that the other steps
// of the type reach on this GPU.
Status score_steps(const std::vector<CollectedGpu>& gpus, SuiteResult& result) {
  TestScore all{.test = "described_all_steps", .protocol = "shipped", .unit = "ms"};
  TestScore by_gpu{.test = "described_steps", .protocol = "shipped", .unit = "ms"};
  TestScore by_host{.test = "described_host_decides", .protocol = "shipped", .unit = "ms"};
  TestScore bf16{.test = "described_bf16_transformers", .protocol = "shipped", .unit = "ms"};
  TestScore trivial{.test = "described_steps_utilisation", .protocol = "shipped", .unit = "ms"};
  TestScore unchanged{.test = "steps_of_other_gpu", .protocol = "recorded", .unit = "ms"};
  for (const CollectedGpu& gpu : gpus) {
    STEPCAST_ASSIGN(const Platform platform, with_hosts_of_others(gpu, gpus));
    const StepModel model{platform};
    std::vector<Described> described;
    for (const CollectedStep& step : gpu.steps) {
      Estimate time;
      double ideal_ms = 0;
      const std::optional<Job> job = job_of(step);
      if (job) {
        STEPCAST_ASSIGN(const ResolvedJob resolved, resolve(*job));
        STEPCAST_ASSIGN(const StepPrediction p, model.predict(resolved.model, resolved.layout));
        time = p.step;
        if (p.peak) ideal_ms = p.model_flops / p.peak->value() * 1e3;
      } else {
        STEPCAST_ASSIGN(time, described_dlrm(step, platform));
      }
      ScoredRow row = row_of_step(step, time.time.value() / 1e3);
      row.p10 = time.p10.value() / 1e3;
      row.p90 = time.p90.value() / 1e3;
      all.set_of(step.gpu).rows.push_back(row);
      if (job && step.dtype == DType::bf16 && step.seq_len_tokens > 0)
        bf16.set_of(step.gpu).rows.push_back(row);
      (step.gpu_decides ? by_gpu : by_host).set_of(step.gpu).rows.push_back(std::move(row));
      if (const CollectedStep* same = on_other_gpu(step, gpus))
        unchanged.set_of(step.gpu).rows.push_back(row_of_step(step, same->ms));
      if (step.gpu_decides) described.push_back({&step, ideal_ms});
    }
    for (const Described& one : described) {
      std::vector<double> shares;
      for (const Described& other : described)
        if (&other != &one && other.ideal_ms > 0 && other.step->dtype == one.step->dtype)
          shares.push_back(other.ideal_ms / other.step->ms);
      if (one.ideal_ms > 0 && !shares.empty())
        trivial.set_of(one.step->gpu).rows.push_back(row_of_step(*one.step, one.ideal_ms / median(shares)));
    }
  }
  result.add(finished({&all, &by_gpu, &by_host, &bf16, &trivial, &unchanged}));
  return Ok{};
}

}  // namespace

Result<SuiteResult> validate_measured(const fs::path& data, const SuiteOptions& options) {
  SuiteResult result{.suite = "measured"};
  fs::path place = data;
  STEPCAST_ASSIGN(const std::vector<CollectedGpu> gpus, collected_gpus(place));
  std::vector<fs::path> kernels;
  for (const CollectedGpu& gpu : gpus)
    if (fs::exists(gpu.folder / "kernels.csv.gz")) kernels.push_back(gpu.folder / "kernels.csv.gz");
  STEPCAST_ASSIGN(const KernelMeasurements rows, read_kernel_measurements(kernels));
  STEPCAST_ASSIGN(std::vector<TestScore> pairs, score_sibling_pairs(rows.rows, {}, options));
  constexpr std::string_view kPairs = "sibling_pairs";
  for (TestScore& test : pairs) test.test.replace(0, kPairs.size(), "kernels_of_other_gpu");
  result.add(std::move(pairs));
  STEPCAST_TRY(score_steps(gpus, result));
  STEPCAST_ASSIGN(TestScore retyped, score_retyped_steps(gpus));
  result.add(finished({&retyped}));
  STEPCAST_ASSIGN(SuiteResult recorded, validate_predict(place, options));
  for (TestScore& test : recorded.tests)
    if (test.test.starts_with("cross_device") || test.test.starts_with("gpu_active"))
      result.add(std::move(test));
  return result;
}

}  // namespace stepcast

#include "lab/run_platforms.h"

#include <fmt/format.h>

#include "stepcast/platform/platform_file.h"

namespace stepcast {
namespace {

constexpr double kBandPerAssumedField = 0.015;  // of the step, to either side

}  // namespace

std::string RunPlatforms::key_of(const LlmRun& run) {
  return fmt::format("{}|{}|{}|{}", run.platform, run.gpu, run.gpus_per_node,
                     run.inter_node_bandwidth_Gbps.value_or(0));
}

MachineDescription machine_of(const LlmRun& run) {
  // Runs whose source names no GPU are read as runs on that platform, which says what it assumes.
  MachineDescription machine{.name = run.gpu.empty() ? "unstated-8gpu" : run.platform,
                             .gpu = run.gpu,
                             .gpus_per_node = run.gpus_per_node,
                             .node_bandwidth_Gbps = run.inter_node_bandwidth_Gbps};
  if (run.platform.find("RoCE") != std::string::npos) machine.network_kind = "RoCE";
  return machine;
}

Result<Platform> RunPlatforms::choose(const LlmRun& run) const {
  const MachineDescription machine = machine_of(run);
  for (const auto& [name, file] : overrides_)
    if (same_name(name, run.platform) || same_name(name, run.gpu) || name == "*")
      return load_platform(file.string());
  STEPCAST_ASSIGN(PlatformChoice choice, platform_for(machine));
  return std::move(choice.platform);
}

Result<StepModel*> RunPlatforms::model_for(const LlmRun& run) {
  const std::string key = key_of(run);
  if (const auto found = entries_.find(key); found != entries_.end()) return found->second->model.get();
  if (const auto known = failures_.find(key); known != failures_.end()) return known->second;
  auto entry = std::make_unique<Entry>();
  Result<Platform> chosen = choose(run);
  if (!chosen) return failures_.emplace(key, std::move(chosen).error()).first->second;
  entry->platform = *std::move(chosen);
  entry->model = std::make_unique<StepModel>(entry->platform, assumptions_);
  StepModel* model = entry->model.get();
  entries_.emplace(key, std::move(entry));
  return model;
}

std::vector<PredictedRun> predict_runs(const std::vector<LlmRun>& runs, RunPlatforms& platforms,
                                       std::vector<Skipped>& skipped) {
  std::vector<PredictedRun> predicted;
  const auto leave_out = [&](const LlmRun& run, const Error& error) {
    skipped.push_back({fmt::format("{}: line {} {}", run.set, run.line, run.model.name), error.message(), 1});
  };
  for (const LlmRun& run : runs) {
    Result<StepModel*> model = platforms.model_for(run);
    if (!model) {
      leave_out(run, model.error());
      continue;
    }
    Result<StepPrediction> prediction = (*model)->predict(run.model, run.layout);
    if (!prediction) {
      leave_out(run, prediction.error());
      continue;
    }
    // Every field that the row leaves open makes the forecast less certain.
    const double open = kBandPerAssumedField * static_cast<double>(run.assumed.size());
    Estimate& step = prediction->step;
    step.p10 = step.p10 - step.time * open;
    step.p90 = step.p90 + step.time * open;
    predicted.push_back({&run, std::move(*prediction)});
  }
  return predicted;
}

}  // namespace stepcast

// The platforms that rows of measured runs name, and forecasts of those rows.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/platform/platform.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/workload/layout.h"

#include "calibrate/llm_runs.h"
#include "lab/metrics.h"
#include "lab/suite.h"

namespace stepcast {

// The machine that a row describes, for platform_for().
[[nodiscard]] MachineDescription machine_of(const LlmRun& run);

// Platforms that rows of measured runs name, each loaded once.
class RunPlatforms {
 public:
  // `overrides`: name as rows have it -> platform file.
  explicit RunPlatforms(std::vector<std::pair<std::string, std::filesystem::path>> overrides = {},
                        const StepAssumptions& assumptions = {})
      : overrides_(std::move(overrides)), assumptions_(assumptions) {}

  // The shipped platform that the row's `platform`, `gpu`, `gpus_per_node` and `inter_node_bandwidth_Gbps`
  // choose; figures of the row that contradict it win. An error if there is none.
  [[nodiscard]] Result<StepModel*> model_for(const LlmRun& run);
  // That platform alone.
  [[nodiscard]] Result<Platform> choose(const LlmRun& run) const;

 private:
  struct Entry {
    Platform platform;
    std::unique_ptr<StepModel> model;
  };
  [[nodiscard]] static std::string key_of(const LlmRun& run);
  std::vector<std::pair<std::string, std::filesystem::path>> overrides_;
  StepAssumptions assumptions_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;
  std::map<std::string, Error> failures_;  // of machines that no platform stands for: looked for once
};

// One run with its forecast.
struct PredictedRun {
  const LlmRun* run = nullptr;
  StepPrediction prediction;
};

// Predicts what can be predicted; the others are named in `skipped`.
[[nodiscard]] std::vector<PredictedRun> predict_runs(const std::vector<LlmRun>& runs, RunPlatforms& platforms,
                                                     std::vector<Skipped>& skipped);

// Runs of language models as rows of a validation suite, and which of them are of the newest release of their software.

// "tp8 pp4x2 cp1 ...".
[[nodiscard]] std::string layout_text(const Layout& layout);

[[nodiscard]] ScoredRow scored(const PredictedRun& p);
[[nodiscard]] double measured_over_predicted(const PredictedRun& p);

// Those that say their release (LlmRun::layout.software.version), of every model, GPU and type of a set the last one.
[[nodiscard]] std::vector<LlmRun> newest_releases(const std::vector<LlmRun>& runs);

// The newest releases alone, by set.
[[nodiscard]] TestScore score_newest_releases(const std::vector<PredictedRun>& runs);
// Runs of models with experts, a set for every release: how software that changes moves the bias.
[[nodiscard]] TestScore score_by_release(const std::vector<PredictedRun>& runs);

}  // namespace stepcast

// The platforms for rows of measured runs, and forecasts of those rows.
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

// Platforms for rows of measured runs, each loaded once.
class RunPlatforms {
 public:
  // `overrides`: platform name in the rows -> platform file.
  explicit RunPlatforms(std::vector<std::pair<std::string, std::filesystem::path>> overrides = {},
                        const StepAssumptions& assumptions = {})
      : overrides_(std::move(overrides)), assumptions_(assumptions) {}

  // The shipped platform selected by `platform`, `gpu`, `gpus_per_node` and `inter_node_bandwidth_Gbps` of the row;
  // contradicting figures of the row take precedence. An error if there is none.
  [[nodiscard]] Result<StepModel*> model_for(const LlmRun& run);
  // Only the platform, chosen as in model_for().
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
  std::map<std::string, Error>
      failures_;  // of machines without a platform, so that each is searched for once
};

// One run with its forecast.
struct PredictedRun {
  const LlmRun* run = nullptr;
  StepPrediction prediction;
};

// Predicts all runs that can be predicted; the others are named in `skipped`.
[[nodiscard]] std::vector<PredictedRun> predict_runs(const std::vector<LlmRun>& runs, RunPlatforms& platforms,
                                                     std::vector<Skipped>& skipped);

// Runs of language models as rows of a suite, and those with the newest release of their software.

// "tp8 pp4x2 cp1 ...".
[[nodiscard]] std::string layout_text(const Layout& layout);

[[nodiscard]] ScoredRow scored(const PredictedRun& p);
[[nodiscard]] double measured_over_predicted(const PredictedRun& p);

// Runs that state their release (LlmRun::layout.software.version): for every model, GPU and type of a set, those of the last
// one.
[[nodiscard]] std::vector<LlmRun> newest_releases(const std::vector<LlmRun>& runs);

// Scores the newest releases only, by set.
[[nodiscard]] TestScore score_newest_releases(const std::vector<PredictedRun>& runs);
// Scores runs of models with experts with a set for every release, to show how software changes move the bias.
[[nodiscard]] TestScore score_by_release(const std::vector<PredictedRun>& runs);

}  // namespace stepcast

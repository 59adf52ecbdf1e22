// Scores step times predicted from a description against measured LLM runs. Nothing is fitted to their
// times, but docs/constants.md lists what was chosen with them in view.
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
#include "stepcast/validate/llm_runs.h"
#include "stepcast/validate/suite.h"

namespace stepcast {

[[nodiscard]] Suite iterations_suite();

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

 private:
  struct Entry {
    Platform platform;
    std::unique_ptr<StepModel> model;
  };
  [[nodiscard]] static std::string key_of(const LlmRun& run);
  [[nodiscard]] Result<Platform> choose(const LlmRun& run) const;
  std::vector<std::pair<std::string, std::filesystem::path>> overrides_;
  StepAssumptions assumptions_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;
};

// One run with its forecast.
struct PredictedRun {
  const LlmRun* run = nullptr;
  StepPrediction prediction;
};

// Predicts what can be predicted; the others are named in `skipped`.
[[nodiscard]] std::vector<PredictedRun> predict_runs(const std::vector<LlmRun>& runs, RunPlatforms& platforms,
                                                     std::vector<Skipped>& skipped);

// How well layouts of one model on one machine and size are ranked.
struct LayoutRanking {
  double spearman = 0;       // rank correlation of predicted and measured time
  double top1_regret = 0;    // percent that the layout predicted fastest is slower than the fastest
  double pairs_ordered = 0;  // percent of pairs more than 5 % apart that are in order
  std::size_t n_pairs = 0;
};
[[nodiscard]] LayoutRanking rank_layouts(const std::vector<double>& measured,
                                         const std::vector<double>& predicted);

}  // namespace stepcast

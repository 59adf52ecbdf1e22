// Scores published steps of models whose layers differ (hybrid_steps.csv: Nemotron 3, Mamba-2 with experts) as a job of that
// software, of the config.json in model_configs beside the file.
//
//   hybrid_steps           (primary) milliseconds of a step, sets by model
//   hybrid_utilisation     the trivial answer: the FLOPs of the model at the median share of the peak that the steps of
//                          other models reach
//   hybrid_same_model      one that knows more: the median rate of a GPU in the other rows of the model, other releases too
//
// "shipped": nothing is fitted. What the rows do not say is as in most recipes of the same software for models with experts
// (bridge_recipes.csv): HybridEP, a distributed optimizer, experts not cut, weights gathered in 8 bits. They ran, so the first
// of no recomputation, of activations and norms, of experts and norms, and of all that fits with room is what they did.
#pragma once

#include <filesystem>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// `data`: a folder with hybrid_steps.csv and model_configs/.
[[nodiscard]] Result<SuiteResult> validate_hybrid(const std::filesystem::path& data);

[[nodiscard]] Suite hybrid_suite();

}  // namespace stepcast

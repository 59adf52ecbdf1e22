// Forecasts a step of post-training on a platform: the GPUs for generation and training, and the time of each part.
//
//   STEPCAST_ASSIGN(const RlForecast f, rl_forecast({job, settings}, steps));
//
// On-policy, the same GPUs generate, score and train in sequence. Off-policy, two pools work concurrently, and the slower pool
// sets the step time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/formats/layout_choice.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/rollout/generation.h"
#include "stepcast/rollout/rl_forecast.h"

namespace stepcast {

// A question about one step.
struct RlQuestion {
  // The policy model with its training settings and GPUs. `n_gpus`: all GPUs of the step. `global_batch_sequences`: sequences of
  // one update; empty: all trained sequences.
  Job job;
  RlSettings settings;
};

// Times of kernels and transfers of a step in seconds, before RlConstants are applied.
struct RlWork {
  GenerationTime generation;
  double log_probabilities_s = 0, reward_s = 0, train_s = 0;
  // Parameters of the policy, for the transfer of weights.
  double parameters = 0;
};
// The parts of a step in seconds. Sets `step_s`; `split` tells whether generation and training overlap.
[[nodiscard]] RlParts parts_of(const RlWork& work, const RlSplit& split, const RlConstants& constants,
                               double& step_s);

// A forecast and its raw times.
struct RlAnswer {
  RlForecast forecast;
  RlWork work;
};

// Chooses the training layout if the user gave none. Empty result: use the default layout that fits.
using TrainingLayout = std::function<std::optional<LayoutChoice>(const Job& asked, const ResolvedJob& usual)>;

// A job with a config or command line is read as in rl_config.h. `open_layout` is called if no training layout is given.
// Errors, each with the nearest valid value: contradictory settings, settings that do not match the model, keys and values that
// fit on no tried engine.
[[nodiscard]] Result<RlAnswer> rl_step(const RlQuestion& said, const StepModel& steps,
                                       const RlConstants& constants = {},
                                       const TrainingLayout& open_layout = {});

}  // namespace stepcast

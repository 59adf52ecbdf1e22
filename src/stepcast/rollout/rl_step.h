// A step of post-training on a platform: which GPUs generate and which train, and how long each part takes.
//
//   STEPCAST_ASSIGN(const RlForecast f, rl_forecast({job, settings}, steps));
//
// On-policy the same GPUs generate, score and train, one after the other. Off-policy two pools do both at once, and the
// step is the longer of the two.
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

struct RlQuestion {
  // The policy; its settings and GPUs are those of training, except that `n_gpus` are all GPUs of the step and
  // `global_batch_sequences` the sequences of one update (nothing: all that are trained on).
  Job job;
  RlSettings settings;
};

// What a step is made of, before RlConstants: times of kernels and transfers.
struct RlWork {
  GenerationTime generation;
  double log_probabilities_s = 0, reward_s = 0, train_s = 0;
  double parameters = 0;
};
// The parts, and the time they come to; `split` says whether they follow each other.
[[nodiscard]] RlParts parts_of(const RlWork& work, const RlSplit& split, const RlConstants& constants,
                               double& step_s);

struct RlAnswer {
  RlForecast forecast;
  RlWork work;
};

// The layout of training on so many GPUs for somebody who named none; nothing: the usual one that fits.
using TrainingLayout = std::function<std::optional<LayoutChoice>(const Job& asked, const ResolvedJob& usual)>;

// A question whose job holds a config or command line is one of rl_config.h. `open_layout` is asked where nothing is said
// of how training is spread. Errors: settings that contradict each other or the model, keys and values that fit on no engine that was tried, each
// with the nearest that works.
[[nodiscard]] Result<RlAnswer> rl_step(const RlQuestion& said, const StepModel& steps,
                                       const RlConstants& constants = {},
                                       const TrainingLayout& open_layout = {});

}  // namespace stepcast

// Distribution of the step times of a run around the typical step: kernel and host jitter, and occasional pauses of a host.
//
//   step_spread(12.03).p99_s      for a median step of 12 s: 1 % of the steps take longer
//
// Pauses arrive as a Poisson process with a fixed length, and all ranks wait for the pausing one. Few short steps are affected,
// but strongly. Long steps contain several pauses, with a smaller relative effect.
#pragma once

#include <span>

#include "stepcast/run/run_forecast.h"

namespace stepcast {

// Parameters of the distribution.
struct StepJitter {
  double sigma = 0.01;         // relative standard deviation of a step without pauses
  double pauses_per_s = 0.06;  // of all ranks together
  double pause_s = 0.4;        // length of a pause
};

// Quantiles of the step time.
struct StepSpread {
  double p50_s = 0, p90_s = 0, p99_s = 0;
};

// Measured from the start of a step to the start of the next one. `typical_s`: median of steps without stops. `stops` adds
// evaluation and checkpoints; leave it empty to compare with the step times that frameworks print, which exclude stops.
[[nodiscard]] StepSpread step_spread(double typical_s, const StepJitter& jitter = {},
                                     std::span<const RegularStop> stops = {});

}  // namespace stepcast

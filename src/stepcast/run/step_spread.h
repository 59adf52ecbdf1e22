// How the steps of a run spread around the typical one: kernels and hosts jitter, and now and then a host pauses.
//
//   step_spread(12.03).p99_s      of steps of 12 s in the median: one in a hundred takes longer
//
// Pauses come at random (Poisson, at so many in a second of training, of one length) and all ranks wait for the one that
// pauses: few short steps are hit, and much; long ones hold several, and suffer less each.
#pragma once

#include <span>

#include "stepcast/run/run_forecast.h"

namespace stepcast {

struct StepJitter {
  double sigma = 0.01;         // of a step without pauses, relative
  double pauses_per_s = 0.06;  // over all ranks
  double pause_s = 0.4;
};

struct StepSpread {
  double p50_s = 0, p90_s = 0, p99_s = 0;
};

// From the start of a step to that of the next one; `typical_s` is the median of steps without stops. Frameworks time
// evaluation and checkpoints apart: what they print of steps has no stops.
[[nodiscard]] StepSpread step_spread(double typical_s, const StepJitter& jitter = {},
                                     std::span<const RegularStop> stops = {});

}  // namespace stepcast

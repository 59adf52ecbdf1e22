// What simpler models say of a recorded step, beside our predictions of it.
//
//   speed_of_light   the GPU alone at its limits: of a rank the longer of its computation, every operation at the
//                    bound of the device, and its transfers at the bandwidth of the links
//   overlap_factor   recorded computation plus transfers, less a constant share of the shorter of the two that runs
//                    beside the other: the share that fits the other ranks of the job, else its other steps, else half
//                    (assumed)
//   published_algorithm   Algorithm 1 of Lin et al. (lab/published_algorithm.h) from execution traces, with the
//                    overheads of the other ranks by the published rules; when each rank began is given, and so is
//                    the recorded time of its data loader, which the algorithm leaves out
#pragma once

#include <vector>

#include "stepcast/predict/step_prices.h"
#include "stepcast/sources/trace_set.h"

#include "lab/recorded_job.h"

namespace stepcast {

// The step of one rank of the last step of a job, as a model has it.
struct BaselineStep {
  std::size_t rank_class = 0;
  double step_us = 0;
  std::size_t n_fit = 0;  // ranks or steps that something was learned from
};

[[nodiscard]] std::vector<BaselineStep> speed_of_light(const RecordedJob& job, const Platform& platform);
[[nodiscard]] std::vector<BaselineStep> overlap_factor(const RecordedJob& job);
// Leave one rank out. Empty where not every rank has an execution trace, or for a single one.
[[nodiscard]] std::vector<BaselineStep> published_algorithm(const RecordedJob& job, const TraceSet& set,
                                                            StepPricer& prices);

}  // namespace stepcast

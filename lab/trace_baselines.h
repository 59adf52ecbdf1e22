// Simple models of a recorded step, as baselines for our predictions.
//
//   speed_of_light   only the GPU at its limits: for each rank the longer of its computation, with every operation at the
//                    bound of the device, and its transfers, at the bandwidth of the links
//   overlap_factor   recorded computation plus transfers, minus a constant share of the shorter of the two for overlap: the
//                    share that fits the other ranks of the job, else its other steps, else half (assumed)
//   published_algorithm   Algorithm 1 of Lin et al. (lab/published_algorithm.h) from execution traces, with the overheads of
//                    the other ranks by the published rules. The start of each rank and the recorded time of its data
//                    loader are given, because the algorithm does not predict them
#pragma once

#include <vector>

#include "stepcast/predict/step_prices.h"
#include "stepcast/sources/trace_set.h"

#include "lab/recorded_job.h"

namespace stepcast {

// The prediction of a model for the last step of a job, for one rank.
struct BaselineStep {
  std::size_t rank_class = 0;
  double step_us = 0;
  std::size_t n_fit = 0;  // ranks or steps used for fitting
};

[[nodiscard]] std::vector<BaselineStep> speed_of_light(const RecordedJob& job, const Platform& platform);
[[nodiscard]] std::vector<BaselineStep> overlap_factor(const RecordedJob& job);
// Leave one rank out. Empty if a rank has no execution trace, or with a single rank.
[[nodiscard]] std::vector<BaselineStep> published_algorithm(const RecordedJob& job, const TraceSet& set,
                                                            StepPricer& prices);

}  // namespace stepcast

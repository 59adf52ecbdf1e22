// The published run that is nearest to a job, and how far our forecasts of such runs were off: tables/published_runs.csv, a
// row for each source, model, GPU, precision and framework, written by `stepcast-lab published-runs`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stepcast/analyze/measured_check.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

struct PublishedQuestion {
  Transformer model;
  std::string gpu;  // name of the device
  DType precision = DType::bf16;
  Framework framework = Framework::unknown;
  std::int64_t n_gpus = 1;
};

// Of all rows the one with the smallest distance: 2 for a model with experts and one without; half of the logarithm to base 2 of
// how many times as many parameters a token meets; 1 for another GPU; 1 for another precision, 0.5 for another framework; a
// quarter of the logarithm to base 2 of how many times the largest, or the smallest run, a job with more GPUs, or fewer, has.
// Judgements: nothing is computed from it. Nothing where the nearest is farther than 4: it says nothing of this job.
[[nodiscard]] std::optional<PublishedRuns> nearest_published(const PublishedQuestion& job);

}  // namespace stepcast

// Finds the published run nearest to a job, and how far our forecasts of such runs were off. The table
// tables/published_runs.csv has one row per source, model, GPU, precision and framework. `stepcast-lab
// published-runs` writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stepcast/analyze/measured_check.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// The job to find a published run for.
struct PublishedQuestion {
  Transformer model;
  std::string gpu;  // name of the device
  DType precision = DType::bf16;
  Framework framework = Framework::unknown;
  std::int64_t n_gpus = 1;
};

// The row with the smallest distance. Terms of the distance: 2 if only one of the models has experts; half of
// |log2| of the ratio of active parameters; 1 for another GPU; 1 for another precision; 0.5 for another
// framework; a quarter of |log2| of the ratio of GPUs to the nearest number that the row covers. The weights
// are judgements, and no number is computed from the distance. Nothing if the nearest row is farther than 4,
// since it says nothing about this job.
[[nodiscard]] std::optional<PublishedRuns> nearest_published(const PublishedQuestion& job);

}  // namespace stepcast

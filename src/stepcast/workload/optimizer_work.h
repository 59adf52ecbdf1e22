// The memory and work of the optimizer on one rank, from the rule of its kind (operation/optimizer_rule.h).
//
//   TrainedParameters trained{.dense = ..., .expert = ...};
//   add_weight_matrices(model, layout, work, chunk, trained);   // for optimizers of whole matrices
//   optimizer_state_bytes(layout, trained);
//   const WorkList update = optimizer_work(layout, trained);
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/workload/layout.h"
#include "stepcast/workload/step_work.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// Weight matrices of one shape on one rank, after the split by tensor parallelism.
struct WeightMatrices {
  std::int64_t rows = 0, columns = 0;
  std::int64_t count = 0;
  bool of_experts = false;
  // Parameters of all `count` matrices.
  [[nodiscard]] double parameters() const {
    return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(count);
  }
};

// Trained parameters of one rank, before the division among ranks that share the optimizer.
struct TrainedParameters {
  double dense = 0, expert = 0;
  std::vector<WeightMatrices> matrices;  // part of these; empty for element-wise optimizers
};

// Number of ranks that share the optimizer of dense and of expert parameters; 1: every rank updates all.
struct OptimizerShards {
  double dense = 1, expert = 1;
};
[[nodiscard]] OptimizerShards optimizer_shards(const Layout& layout);

// Adds the matrices of the layers of `chunk`. Adds none for element-wise optimizers and for frozen models.
// Biases, norms, embedding and output matrix are not included.
void add_weight_matrices(const Transformer& model, const Layout& layout, const StepWork& work,
                         const ChunkWork& chunk, TrainedParameters& trained);

// Bytes of moments, statistics and derived matrices on one rank.
[[nodiscard]] double optimizer_state_bytes(const Layout& layout, const TrainedParameters& trained);

// Host operators per step of an eager optimizer that loops over tensors, on the stage with the most.
[[nodiscard]] double update_operators(const Transformer& model, const Layout& layout, const StepWork& work);

// Clipping, update and casts. Gradient and weight communication is not included; gathering of whole matrices
// is.
[[nodiscard]] WorkList optimizer_work(const Layout& layout, const TrainedParameters& trained);

}  // namespace stepcast

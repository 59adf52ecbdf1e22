// What the optimizer keeps and does on one rank, from the row of its kind (operation/optimizer_rule.h).
//
//   TrainedParameters trained{.dense = ..., .expert = ...};
//   add_weight_matrices(model, layout, work, chunk, trained);     // where whole matrices are updated
//   optimizer_state_bytes(layout, trained);
//   const WorkList update = optimizer_work(layout, trained);
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/workload/layout.h"
#include "stepcast/workload/step_work.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// Weight matrices of one shape on one rank, as tensor parallelism cuts them.
struct WeightMatrices {
  std::int64_t rows = 0, columns = 0;
  std::int64_t count = 0;
  bool of_experts = false;
  [[nodiscard]] double parameters() const {
    return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(count);
  }
};

// Trained parameters of one rank, not divided among the ranks that share the optimizer.
struct TrainedParameters {
  double dense = 0, expert = 0;
  std::vector<WeightMatrices> matrices;  // of these; empty for optimizers that work element by element
};

// Ranks among which the optimizer of dense and of expert parameters is divided; 1: every rank does all.
struct OptimizerShards {
  double dense = 1, expert = 1;
};
[[nodiscard]] OptimizerShards optimizer_shards(const Layout& layout);

// The matrices of the layers of `chunk`; nothing for optimizers that work element by element, and where the weights of
// the model are frozen. Biases, norms, embedding and output matrix are none.
void add_weight_matrices(const Transformer& model, const Layout& layout, const StepWork& work,
                         const ChunkWork& chunk, TrainedParameters& trained);

// Moments, statistics and what is derived from them; of one rank.
[[nodiscard]] double optimizer_state_bytes(const Layout& layout, const TrainedParameters& trained);

// Operators that the host runs for it where an eager stack goes from tensor to tensor, on the stage with most of them.
[[nodiscard]] double update_operators(const Transformer& model, const Layout& layout, const StepWork& work);

// Clipping, update, casts. Transfers of gradients and weights are not in it; those that put whole matrices together are.
[[nodiscard]] WorkList optimizer_work(const Layout& layout, const TrainedParameters& trained);

}  // namespace stepcast

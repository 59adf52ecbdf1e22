// The operations of the dense part of a recommendation model on one rank, as its stack launches them.
#pragma once

#include <string_view>
#include <vector>

#include "stepcast/operation/operation.h"
#include "stepcast/recommend/dlrm.h"
#include "stepcast/recommend/dlrm_program.h"

namespace stepcast::detail {

// An operation of the dense part on one rank.
struct DenseOp {
  std::string_view name;
  Operation operation;
  double gradient_elements = 0;  // parameters whose gradients are there after it
  bool further = false;          // launched by the operator before it
  double share = 1;              // of the operation
  bool beside = false;           // of the operation after it, on another stream
};

struct DenseParts {
  // `next_inputs`: half of what a step computes for the one after it, run in each of its two waits. `next_batch`: copies of
  // the next batch to the GPU, beside everything.
  std::vector<DenseOp> inputs, next_inputs, next_batch, bottom, interaction, top, loss, top_backward,
      interaction_backward, bottom_backward, update;
};
// What the dense optimizer does to so many parameters: one kernel, or one for each step of its rule.
[[nodiscard]] std::vector<DenseOp> dense_update(const DlrmTraining& training, double parameters);

[[nodiscard]] DenseParts dense_parts(const Dlrm& model, const DlrmTraining& training,
                                     const DlrmBehavior& habits, std::int64_t n_ranks);

}  // namespace stepcast::detail

// The operations of the dense part of a recommendation model on one rank, as its software stack launches
// them.
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
  Operation operation;           // shape and dtype
  double gradient_elements = 0;  // number of parameters with gradients ready after it
  bool further = false;          // launched by the same operator as the previous one
  double share = 1;              // share of the operation that runs here
  bool beside = false;           // overlaps the next operation, on another stream
};

// The operations of a step, in the order of the members.
struct DenseParts {
  // `next_inputs` is half of the work that a step does for the next batch; it runs in each of the two waits
  // for an all-to-all. `next_batch` are the copies of the next batch to the GPU, which overlap everything.
  std::vector<DenseOp> inputs, next_inputs, next_batch, bottom, interaction, top, loss, top_backward,
      interaction_backward, bottom_backward, update;
};
// The update of `parameters` weights by the dense optimizer: one kernel, or one for each step of its rule.
[[nodiscard]] std::vector<DenseOp> dense_update(const DlrmTraining& training, double parameters);

// The operations of one rank out of `n_ranks`.
[[nodiscard]] DenseParts dense_parts(const Dlrm& model, const DlrmTraining& training,
                                     const DlrmBehavior& habits, std::int64_t n_ranks);

}  // namespace stepcast::detail

// Predicts recorded ranks with other work: another batch, the shapes of another step, another element type or more
// data-parallel ranks.
//
//   STEPCAST_ASSIGN(const ChangedWork changed, changed_work(recorded, {.batch = {{32, 64}}}));
//   changed.apply(pricer, gpus_per_node, recorded_gpus_per_node, prices);
//
// The new time of a task is its priced time x (model of the new work / model of the recorded work), both on one GPU. Model
// errors common to both cancel, and tasks without a change keep their time exactly.
//
// Batch. A dimension that is a multiple of the recorded batch scales if an operation of this shape can have the batch there:
// rows of a GEMM (in gradients of weights its inner dimension, found by the matching forward GEMM), the batch of
// convolutions and attention, the bags of a lookup, rows of norms, softmax and losses, elements. Optimizer work and tensors
// with the size of a weight do not scale. All-to-alls, messages between pipeline stages and forward all-reduces scale;
// gradients do not. The time never grows faster than the work.
// Shapes of another step. Tasks paired by other_shapes.h get the work of their counterpart. If a kernel of the same name is
// long enough to fill the GPU, its time grows in proportion to its work, because more of the same blocks run.
// Types. To 16 bits as under automatic mixed precision: GEMMs, convolutions, attention, batch norm, elementwise work and
// copies of activations. Other norms, softmax, losses, reductions, optimizer and gradients keep their types, and no casts
// are added. To fp32 or tf32: no tensor remains in 16 bits, and casts between both take no time. tf32 applies only to GEMMs
// and convolutions; fp32 does not use tf32 units.
// Data-parallel ranks. Transfers among all recorded ranks get the requested number of ranks instead, placed node by node.
// The recorded ranks represent all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/retrace/recorded_prices.h"

namespace stepcast {

// A change of the number of samples per rank.
struct BatchChange {
  std::int64_t recorded = 0;  // 0: derive it from the shapes
  std::int64_t wanted = 0;
};

// The requested changes. With `shapes_of` no other change is allowed.
struct WorkChange {
  std::optional<BatchChange> batch{};
  DType dtype = DType::unknown;          // unknown: as recorded
  std::int64_t data_parallel_ranks = 0;  // 0: as recorded
  const RecordedProgram* shapes_of =
      nullptr;  // another step of the same ranks; with it nothing else may be asked for
  [[nodiscard]] bool empty() const {
    return !batch && dtype == DType::unknown && data_parallel_ranks == 0 && shapes_of == nullptr;
  }
};

// The recorded batch in samples per rank: the most frequent batch of convolutions and attention in the forward pass, else the
// most frequent number of rows of GEMMs. Layer norms mark rows as tokens, except in models with embedding bags; then, and
// without any such operation, the result is empty.
[[nodiscard]] std::optional<std::int64_t> batch_of(const RecordedProgram& recorded);

// The changed work of every task, computed once and applicable to the prices of any platform.
class ChangedWork {
 public:
  // Multiplies the times of changed tasks in all three Costs of `priced`. Errors: a type for which the device has no peak rate,
  // a group that does not fit the platform.
  [[nodiscard]] Status apply(const RecordedProgram& recorded, StepPricer& prices, std::int64_t gpus_per_node,
                             std::int64_t recorded_gpus_per_node, RecordedPrices& priced) const;
  // Sentences for the user about what changed and by how much.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend Result<ChangedWork> changed_work(const RecordedProgram& recorded, const WorkChange& change);
  std::vector<std::vector<TaskWork>> of_task_;  // [block][task]; monostate: as recorded
  std::vector<std::vector<bool>> unknown_;  // [block][task] true: unknown operation, scaled with the batch
  std::vector<std::vector<bool>>
      same_kernel_;  // [block][task] done by the kernel that was recorded; empty: none
  double batch_ratio_ = 1;
  std::int64_t data_parallel_ranks_ = 0;
  DType dtype_ = DType::unknown;
  std::vector<std::string> notes_;
};

// Errors: the shapes do not show the recorded batch, or no dimension is a multiple of it; no collective among all ranks (for
// data_parallel_ranks); `shapes_of` has other ranks.
[[nodiscard]] Result<ChangedWork> changed_work(const RecordedProgram& recorded, const WorkChange& change);

}  // namespace stepcast

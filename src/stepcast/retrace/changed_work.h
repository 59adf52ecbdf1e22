// Recorded ranks with other work: another batch, the shapes of another step, other element types, more data-parallel
// ranks.
//
//   STEPCAST_ASSIGN(const ChangedWork changed, changed_work(recorded, {.batch = {{32, 64}}}));
//   changed.apply(pricer, gpus_per_node, recorded_gpus_per_node, prices);
//
// Every task keeps the time it was priced with, times what models of one GPU say of its new work over what they say of
// its recorded one: errors that a model makes on both cancel, and what does not change keeps its time exactly.
//
// Batch. An extent that is a multiple of the recorded batch scales where the shape of the operation says that the batch
// can be there: rows of a product (its inner extent in gradients of weights, told by the forward product they belong
// to), the batch of convolutions and attention, the bags of a lookup, rows of norms, softmax and losses, elements. What
// optimizers do, and what is as large as a weight, does not; of transfers, exchanges and messages between
// pipeline stages do and gradients do not. Time grows no faster than work does.
// Shapes of another step. What other_shapes.h pairs has the work that it has there. A kernel of the same name that is long
// enough to fill the GPU takes as much longer as it has more work: the same code in more of the same blocks.
// Types. To 16 bits as under automatic mixed precision: products, convolutions, attention, batch norm, elementwise work and
// copies of activations; other norms, softmax, losses, reductions, optimizer and gradients keep theirs, and casts are not added.
// To fp32 or tf32: nothing keeps 16 bits, casts between both take no time; tf32 is for products and convolutions alone, and
// fp32 is no tf32.
// Data parallel ranks. Transfers among all recorded ranks join so many ranks instead, node by node; the recorded ranks
// stand for all.
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

// Samples per rank.
struct BatchChange {
  std::int64_t recorded = 0;  // 0: the one that the shapes show
  std::int64_t wanted = 0;
};

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

// The batch that most convolutions and attentions of the forward pass show, or else most products, whose rows are samples where no
// layer norm says that they are tokens (but in a model that looks up bags); nothing where none does.
[[nodiscard]] std::optional<std::int64_t> batch_of(const RecordedProgram& recorded);

class ChangedWork {
 public:
  // Multiplies the times of the tasks whose work changes, in all three Costs. Errors: a type that the device has no
  // rate for, a group that the platform cannot hold.
  [[nodiscard]] Status apply(const RecordedProgram& recorded, StepPricer& prices, std::int64_t gpus_per_node,
                             std::int64_t recorded_gpus_per_node, RecordedPrices& priced) const;
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend Result<ChangedWork> changed_work(const RecordedProgram& recorded, const WorkChange& change);
  std::vector<std::vector<TaskWork>> of_task_;  // [block][task]; monostate: as recorded
  std::vector<std::vector<bool>> unknown_;  // [block][task] of no known operation: in proportion to the batch
  std::vector<std::vector<bool>>
      same_kernel_;  // [block][task] done by the kernel that was recorded; empty: none
  double batch_ratio_ = 1;
  std::int64_t data_parallel_ranks_ = 0;
  DType dtype_ = DType::unknown;
  std::vector<std::string> notes_;
};

// Errors: a batch that no shape shows, or that none is a multiple of; ranks that share no collective; shapes of a step of
// other ranks.
[[nodiscard]] Result<ChangedWork> changed_work(const RecordedProgram& recorded, const WorkChange& change);

}  // namespace stepcast

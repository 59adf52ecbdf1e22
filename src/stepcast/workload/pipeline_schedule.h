// Pipeline schedules: the order in which a stage runs the forward and backward passes of its micro-batches.
//
// A schedule is only an order per stage. Start times follow from the order, from the messages of neighbours
// and from the durations of passes. Sources: GPipe (Huang et al. 2019); 1F1B and its interleaved form
// (Narayanan et al. 2021); ZB-H1 (Qi et al. 2023); DualPipe (DeepSeek-V3 2024, section 3.2.1). The bubble of
// DualPipe, (P/2 - 1)(F&B + B - 3W), equals that of ZB-H1, (P - 1)(F + B - 2W), within one pass where a
// backward takes two forwards and a weight gradient one; so DualPipe is modelled with the order of ZB-H1 and
// the memory of two stages per rank. ZB-V, V-Half and V-Min: Qi et al. 2024, "Pipeline Parallelism with
// Controllable Memory": a block of the six passes of a micro-batch, repeated for each micro-batch, with a
// fixed delay between neighbours.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/layout.h"

namespace stepcast {

enum class PassKind : std::uint8_t {
  forward,
  backward,         // both gradients; with zero-bubble schedules only the gradient of the activations
  weight_gradient,  // zero-bubble schedules only
};

// One pass of a stage.
struct PipelinePass {
  PassKind kind = PassKind::forward;
  std::uint16_t chunk = 0;  // virtual stage of this rank, 0 .. virtual_stages - 1
  std::uint32_t micro_batch = 0;
  friend bool operator==(const PipelinePass&, const PipelinePass&) = default;
};

// The parameters of a schedule.
struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::uint32_t stages = 1;
  std::uint32_t virtual_stages = 1;
  std::uint32_t micro_batches = 1;
  // One more forward pass before the first backward, so that overlapped forward and backward passes belong to
  // different micro-batches (--overlap-moe-expert-parallel-comm; Megatron Core, get_pp_rank_microbatches).
  bool one_more_forward = false;
  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;
};

// Whether a layout uses one_more_forward.
[[nodiscard]] bool runs_one_more_forward(const Layout& layout);
// Sets the schedule with the options that it implies.
void set_schedule(PipelineSchedule schedule, Layout& layout);

// Errors: no stages, interleaving with micro-batches that are not a multiple of the stages, and so on.
[[nodiscard]] Status check(const PipelineShape& shape);

// All passes of `stage` (0: first) in the order of execution. `shape` must pass check().
[[nodiscard]] std::vector<PipelinePass> pipeline_order(const PipelineShape& shape, std::uint32_t stage);
// The same into a vector, reusing its memory.
void pipeline_order(const PipelineShape& shape, std::uint32_t stage, std::vector<PipelinePass>& order);

// The largest number of micro-batches (of one chunk each) with activations on `stage` at once.
[[nodiscard]] std::uint32_t peak_activations_held(const PipelineShape& shape, std::uint32_t stage);

}  // namespace stepcast

// Pipeline schedules: in which order a stage runs the forward and backward passes of its micro-batches.
//
// A schedule is an order per stage and nothing else: when a pass starts follows from the order, from what the
// neighbours send and from how long passes take. Sources: GPipe (Huang et al. 2019); 1F1B and its interleaved
// form (Narayanan et al. 2021); ZB-H1 (Qi et al. 2023); DualPipe (DeepSeek-V3 2024, section 3.2.1), whose bubble of
// (P/2 - 1)(F&B + B - 3W) is that of ZB-H1, (P - 1)(F + B - 2W), within one pass where a backward takes two forwards and
// a weight gradient one: it is laid out in the order of ZB-H1, with the memory of two stages on every rank. ZB-V, V-Half
// and V-Min: Qi et al. 2024, "Pipeline Parallelism with Controllable Memory": a block of the six passes of a micro-batch,
// repeated for every one, in which neighbours are a fixed time apart.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/layout.h"

namespace stepcast {

enum class PassKind : std::uint8_t {
  forward,
  backward,         // both gradients; with zero-bubble schedules the gradient of the activations alone
  weight_gradient,  // zero-bubble schedules only
};

struct PipelinePass {
  PassKind kind = PassKind::forward;
  std::uint16_t chunk = 0;  // virtual stage of this rank, 0 .. virtual_stages - 1
  std::uint32_t micro_batch = 0;
  friend bool operator==(const PipelinePass&, const PipelinePass&) = default;
};

struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::uint32_t stages = 1;
  std::uint32_t virtual_stages = 1;
  std::uint32_t micro_batches = 1;
  // A forward pass more before the first backward one, so that a forward and a backward pass that run side by side are of
  // different micro-batches (--overlap-moe-expert-parallel-comm; Megatron Core, get_pp_rank_microbatches).
  bool one_more_forward = false;
  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;
};

// Whether passes run side by side so.
[[nodiscard]] bool runs_one_more_forward(const Layout& layout);
// Sets the schedule with what it brings along.
void set_schedule(PipelineSchedule schedule, Layout& layout);

// Names what cannot be: no stages, interleaving with micro-batches that are no multiple of the stages, ...
[[nodiscard]] Status check(const PipelineShape& shape);

// All passes of `stage` (0 = first) in the order in which it runs them. `shape` must pass check().
[[nodiscard]] std::vector<PipelinePass> pipeline_order(const PipelineShape& shape, std::uint32_t stage);
// The same into a vector whose memory is used again.
void pipeline_order(const PipelineShape& shape, std::uint32_t stage, std::vector<PipelinePass>& order);

// The most micro-batches (of one chunk each) whose activations `stage` holds at once.
[[nodiscard]] std::uint32_t peak_activations_held(const PipelineShape& shape, std::uint32_t stage);

}  // namespace stepcast

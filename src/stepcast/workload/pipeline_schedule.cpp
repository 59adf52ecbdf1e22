#include "stepcast/workload/pipeline_schedule.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

// Orders of passes per schedule, and the resulting peak of activations.

namespace stepcast {
namespace {

// All forwards, then all backwards.
void gpipe(const PipelineShape& shape, std::vector<PipelinePass>& order) {
  for (std::uint32_t m = 0; m < shape.micro_batches; ++m) order.push_back({PassKind::forward, 0, m});
  for (std::uint32_t m = 0; m < shape.micro_batches; ++m) order.push_back({PassKind::backward, 0, m});
}

// Warm-up forwards, then alternating forward and backward, then the remaining backwards.
void one_f_one_b(const PipelineShape& shape, std::uint32_t stage, std::vector<PipelinePass>& order) {
  const std::uint32_t more = shape.one_more_forward ? 1 : 0;
  const std::uint32_t warm_up = std::min(shape.stages - 1 - stage + more, shape.micro_batches);
  for (std::uint32_t m = 0; m < warm_up; ++m) order.push_back({PassKind::forward, 0, m});
  for (std::uint32_t m = warm_up; m < shape.micro_batches; ++m) {
    order.push_back({PassKind::forward, 0, m});
    order.push_back({PassKind::backward, 0, m - warm_up});
  }
  for (std::uint32_t m = shape.micro_batches - warm_up; m < shape.micro_batches; ++m)
    order.push_back({PassKind::backward, 0, m});
}

// Like 1F1B, with the weight gradients of a micro-batch delayed by as many backwards as the stage is behind
// the first one, so that no stage keeps more activations than the first stage of 1F1B.
void zero_bubble_h1(const PipelineShape& shape, std::uint32_t stage, std::vector<PipelinePass>& order) {
  const std::uint32_t warm_up = std::min(shape.stages - 1 - stage, shape.micro_batches);
  const std::uint32_t held_back = std::min(stage, shape.micro_batches);
  std::uint32_t backwards = 0, weight_gradients = 0;
  const auto backward = [&] {
    order.push_back({PassKind::backward, 0, backwards++});
    if (backwards > held_back) order.push_back({PassKind::weight_gradient, 0, weight_gradients++});
  };
  for (std::uint32_t m = 0; m < warm_up; ++m) order.push_back({PassKind::forward, 0, m});
  for (std::uint32_t m = warm_up; m < shape.micro_batches; ++m) {
    order.push_back({PassKind::forward, 0, m});
    backward();
  }
  while (backwards < shape.micro_batches) backward();
  while (weight_gradients < shape.micro_batches)
    order.push_back({PassKind::weight_gradient, 0, weight_gradients++});
}

// Forwards before the first backward (Megatron Core since 2024, get_pp_rank_microbatches).
std::uint32_t interleaved_warm_up(const PipelineShape& shape, std::uint32_t stage) {
  const std::uint32_t stages = shape.stages, chunks = shape.virtual_stages;
  const std::uint32_t total = shape.micro_batches * chunks, more = shape.one_more_forward ? 1 : 0;
  return std::min(total, (stages - 1 - stage) * 2 + (chunks - 1) * stages + more);
}

// Virtual micro-batch k runs forward on chunk (k mod PV) / P; micro-batches form groups of P.
void interleaved(const PipelineShape& shape, std::uint32_t stage, std::vector<PipelinePass>& order) {
  const std::uint32_t stages = shape.stages, chunks = shape.virtual_stages;
  const std::uint32_t total = shape.micro_batches * chunks;
  const auto pass = [&](PassKind kind, std::uint32_t k) {
    const std::uint32_t in_group = k % (stages * chunks);
    std::uint32_t chunk = in_group / stages;
    if (kind == PassKind::backward) chunk = chunks - 1 - chunk;
    order.push_back(
        {kind, static_cast<std::uint16_t>(chunk), k / (stages * chunks) * stages + in_group % stages});
  };
  const std::uint32_t warm_up = interleaved_warm_up(shape, stage);
  for (std::uint32_t k = 0; k < warm_up; ++k) pass(PassKind::forward, k);
  for (std::uint32_t k = warm_up; k < total; ++k) {
    pass(PassKind::forward, k);
    pass(PassKind::backward, k - warm_up);
  }
  for (std::uint32_t k = total - warm_up; k < total; ++k) pass(PassKind::backward, k);
}

// Times of the passes of the first micro-batch, in units of a pass; those of micro-batch m are 6 m later.
// "there": the first chunk, down the stages; "back": the second chunk, up the stages.
struct VBlock {
  enum Pass : std::uint8_t { forward_there, forward_back, backward_back, backward_there, kTimed };
  // On stage 0 for passes down the stages, on the last stage for passes up.
  std::array<std::uint32_t, kTimed> first{};
  std::array<std::uint32_t, kTimed> stride{};  // delay from neighbour to neighbour

  // Time of a pass on a stage.
  [[nodiscard]] std::uint32_t at(std::uint32_t pass, std::uint32_t stage, std::uint32_t stages) const {
    const bool comes_up = pass == forward_back || pass == backward_there;
    return first[pass] + stride[pass] * (comes_up ? stages - 1 - stage : stage);
  }
};
constexpr std::uint32_t kVBlockPasses = 6;

// Delays of the way there and back. The lifetime of activations is proportional to their sum: (2, 4) keeps as
// many as 1F1B, (1, 2) half and (1, 1) a third.
std::array<std::uint32_t, 2> v_strides(PipelineSchedule schedule) {
  if (schedule == PipelineSchedule::v_min) return {1, 1};
  if (schedule == PipelineSchedule::v_half) return {1, 2};
  return {2, 4};
}

// Waiting times of the first micro-batch at its turns and between its forward and backward, such that no two
// passes collide on a stage. Of the 216 combinations, these have the fewest activations, and among those the
// shortest step with equal passes; they depend only on the stages modulo 2 and 3.
std::array<std::uint32_t, 3> v_waits(const PipelineShape& shape) {
  if (shape.schedule == PipelineSchedule::v_min && shape.stages % 3 == 0) return {2, 0, 2};
  if (shape.schedule != PipelineSchedule::v_half) return {0, 0, 0};
  if (shape.stages % 2 == 0) return {4, 0, 3};
  return {1, 0, 0};
}

// Each pass starts one unit after the previous one at the turning stage, plus the wait.
VBlock v_block(const PipelineShape& shape) {
  const auto [there, back] = v_strides(shape.schedule);
  const std::array<std::uint32_t, 3> waits = v_waits(shape);
  VBlock block{.stride = {there, back, there, back}};
  for (std::uint32_t pass = 1; pass < VBlock::kTimed; ++pass) {
    const std::uint32_t turn = pass == VBlock::backward_back ? 0 : shape.stages - 1;
    block.first[pass] = block.at(pass - 1, turn, shape.stages) + 1 + waits[pass - 1];
  }
  return block;
}

// The four timed passes leave two of six slots for weight gradients.
void v_shaped(const PipelineShape& shape, std::uint32_t stage, std::vector<PipelinePass>& order) {
  struct Timed {
    std::uint32_t at = 0;
    PassKind kind = PassKind::forward;
    std::uint16_t chunk = 0;
  };
  const VBlock block = v_block(shape);
  const auto time = [&](std::uint32_t pass) { return block.at(pass, stage, shape.stages); };
  std::array<Timed, kVBlockPasses> passes{{{time(VBlock::forward_there), PassKind::forward, 0},
                                           {time(VBlock::forward_back), PassKind::forward, 1},
                                           {time(VBlock::backward_back), PassKind::backward, 1},
                                           {time(VBlock::backward_there), PassKind::backward, 0}}};
  // Weight gradients take the two remaining slots, as early as possible.
  std::array<bool, kVBlockPasses> taken{};
  for (std::uint32_t i = 0; i < VBlock::kTimed; ++i) taken[passes[i].at % kVBlockPasses] = true;
  for (std::uint32_t i = VBlock::kTimed; i < kVBlockPasses; ++i) {
    const Timed& gradient = passes[i - 2];
    std::uint32_t at = gradient.at + 1;
    while (taken[at % kVBlockPasses]) ++at;
    taken[at % kVBlockPasses] = true;
    passes[i] = {at, PassKind::weight_gradient, gradient.chunk};
  }
  std::array<const Timed*, kVBlockPasses> in_place{};
  for (const Timed& pass : passes) in_place[pass.at % kVBlockPasses] = &pass;
  const std::size_t all = std::size_t{kVBlockPasses} * shape.micro_batches;
  for (std::uint32_t t = 0; order.size() < all; ++t) {
    const Timed& pass = *in_place[t % kVBlockPasses];
    if (t < pass.at || (t - pass.at) / kVBlockPasses >= shape.micro_batches) continue;
    order.push_back({pass.kind, pass.chunk, (t - pass.at) / kVBlockPasses});
  }
}

// Peak of activations of a V schedule, which stay until the weight gradients. Simulates the order.
std::uint32_t v_shaped_held(PipelineShape shape, std::uint32_t stage) {
  // The peak is reached after as many micro-batches as fit between the first forward and its weight
  // gradients.
  shape.micro_batches = std::min(shape.micro_batches, 4 * shape.stages + 4);
  std::uint32_t held = 0, most = 0;
  for (const PipelinePass& pass : pipeline_order(shape, stage)) {
    if (pass.kind == PassKind::forward) most = std::max(most, ++held);
    if (pass.kind == PassKind::weight_gradient) --held;
  }
  return most;
}

}  // namespace

bool runs_one_more_forward(const Layout& layout) {
  return layout.layer.overlap.expert && layout.degrees.expert > 1 &&
         !splits_backward(layout.pipeline.schedule) &&
         (layout.degrees.pipeline == 1 || layout.degrees.virtual_stages > 1);
}

void set_schedule(PipelineSchedule schedule, Layout& layout) {
  layout.pipeline.schedule = schedule;
  if (schedule != PipelineSchedule::dual_pipe) return;
  // DualPipe exists to overlap the all-to-all of one micro-batch with the computation of another.
  layout.layer.overlap.expert = layout.layer.overlap.delayed_weight_gradient = true;
  layout.pipeline.overlap = true;
}

Status check(const PipelineShape& shape) {
  if (shape.stages == 0)
    return Error{"a pipeline without stages: give a pipeline-parallel size of at least 1"};
  if (shape.micro_batches == 0)
    return Error{"a step without micro-batches: raise the global batch size or lower the micro-batch size"};
  if (shape.virtual_stages == 0) return Error{"0 virtual stages: 1 is a schedule without interleaving"};
  if (shape.schedule == PipelineSchedule::interleaved) {
    if (shape.stages == 1 && shape.virtual_stages > 1) {
      return Error{
          fmt::format("{} virtual stages on one pipeline stage: interleaving needs at least 2 stages",
                      shape.virtual_stages)};
    }
    if (shape.virtual_stages > 1 && shape.micro_batches % shape.stages != 0) {
      const std::uint32_t lower = shape.micro_batches / shape.stages * shape.stages;
      return Error{
          fmt::format("{} micro-batches are not a multiple of {} pipeline stages, as the interleaved "
                      "schedule needs: use {}",
                      shape.micro_batches, shape.stages, lower == 0 ? shape.stages : lower)};
    }
  } else if (is_v_shaped(shape.schedule)) {
    if (shape.virtual_stages != 2)
      return Error{fmt::format("{} virtual stages: a V-shaped schedule has 2", shape.virtual_stages)};
  } else if (shape.virtual_stages > 1) {
    return Error{
        fmt::format("{} virtual stages: only the interleaved schedule has them", shape.virtual_stages)};
  }
  if (shape.schedule == PipelineSchedule::dual_pipe &&
      (shape.stages % 2 != 0 || shape.micro_batches % 2 != 0)) {
    return Error{
        fmt::format("{} pipeline stages and {} micro-batches: DualPipe feeds half of the micro-batches from "
                    "each end, so both numbers must be even",
                    shape.stages, shape.micro_batches)};
  }
  // Limits the memory, since schedules are materialised.
  constexpr double kMostPasses = 1e7;
  const double passes = 3.0 * shape.stages * shape.virtual_stages * shape.micro_batches;
  if (passes > kMostPasses) {
    return Error{
        fmt::format("{} micro-batches on {} pipeline stages x {} virtual stages are too many to simulate "
                    "({:.0e} passes at most): raise the micro-batch size or the data-parallel size",
                    shape.micro_batches, shape.stages, shape.virtual_stages, kMostPasses)};
  }
  return Ok{};
}

void pipeline_order(const PipelineShape& shape, std::uint32_t stage, std::vector<PipelinePass>& order) {
  order.clear();
  switch (shape.schedule) {
    case PipelineSchedule::gpipe: return gpipe(shape, order);
    case PipelineSchedule::zero_bubble_h1:
    case PipelineSchedule::dual_pipe: return zero_bubble_h1(shape, stage, order);
    case PipelineSchedule::zb_v:
    case PipelineSchedule::v_half:
    case PipelineSchedule::v_min: return v_shaped(shape, stage, order);
    case PipelineSchedule::interleaved:
      if (shape.virtual_stages > 1) return interleaved(shape, stage, order);
      return one_f_one_b(shape, stage, order);
    case PipelineSchedule::one_f_one_b: return one_f_one_b(shape, stage, order);
  }
}

std::vector<PipelinePass> pipeline_order(const PipelineShape& shape, std::uint32_t stage) {
  std::vector<PipelinePass> order;
  pipeline_order(shape, stage, order);
  return order;
}

// Closed forms of the orders above: the peak is reached at the end of the warm-up.
std::uint32_t peak_activations_held(const PipelineShape& shape, std::uint32_t stage) {
  const std::uint32_t micro_batches = shape.micro_batches;
  switch (shape.schedule) {
    case PipelineSchedule::gpipe: return micro_batches;
    case PipelineSchedule::zero_bubble_h1: {
      // Each backward keeps its activations until its weight gradients, `stage` backwards later.
      const std::uint32_t warm_up = std::min(shape.stages - 1 - stage, micro_batches);
      return std::min(micro_batches, warm_up + 1 + std::min(stage, micro_batches));
    }
    // Every rank has the activations of all stages plus one.
    case PipelineSchedule::dual_pipe: return std::min(micro_batches, shape.stages + 1);
    case PipelineSchedule::zb_v:
    case PipelineSchedule::v_half:
    case PipelineSchedule::v_min: return v_shaped_held(shape, stage);
    case PipelineSchedule::interleaved:
      if (shape.virtual_stages > 1) {
        const std::uint32_t total = micro_batches * shape.virtual_stages;
        return std::min(total, interleaved_warm_up(shape, stage) + 1);
      }
      [[fallthrough]];
    case PipelineSchedule::one_f_one_b:
      return std::min(micro_batches, shape.stages - stage + (shape.one_more_forward ? 1 : 0));
  }
  return micro_batches;
}

}  // namespace stepcast

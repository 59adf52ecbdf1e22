#include "stepcast/predict/step_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace stepcast {
namespace {

// Lanes have moved alike over a round if they differ by less than this share of the time so far: rounding.
constexpr double kAlike = 1e-13;
// Of all walks that are remembered: 40 bytes each. A search over layouts comes back to some hundred shapes.
constexpr std::size_t kMostSteps = 500'000;

// Places of lanes (ScheduleEvaluator::Lanes).
constexpr unsigned kLanesPerStage = 8, kSendForward = 4, kSendBackward = 5;

// What a step of a walk is.
enum OpIs : std::uint8_t {
  kSends = 1,  // to the chunk behind (forward) or in front (backward)
  kForward = 2,
  kBackward = 4,
  kFirstForward = 8,
  kLastBackward = 16,
};

}  // namespace

// Unit by unit; weights arrive beside the computation.
void ScheduleEvaluator::gather_and_forward(const StepSchedule& schedule, const ScheduleChunk& chunk,
                                           Lanes& lanes) {
  const bool paced = schedule.gather == WeightGather::every_forward;
  for (const ScheduleUnit& unit : chunk.units) {
    if (unit.gather_us > 0) {
      // At most two units are gathered and not yet used: the limit of FSDP. Buckets of an optimizer's
      // weights have room of their own.
      lanes.data = std::max(lanes.data, paced ? lanes.before_that : 0.0) + unit.gather_us;
      lanes.weights_us += std::max(0.0, lanes.data - lanes.compute);
      lanes.compute = std::max(lanes.compute, lanes.data);
    }
    lanes.compute += unit.forward_us;
    lanes.before_that = lanes.before;
    lanes.before = lanes.compute;
  }
}

void ScheduleEvaluator::backward_and_reduce(const StepSchedule& schedule, const ScheduleChunk& chunk,
                                            bool reduces, Lanes& lanes) {
  const bool gathers = schedule.gather == WeightGather::every_forward && schedule.gather_backward;
  const std::vector<ScheduleUnit>& units = chunk.units;
  double gathered = 0;  // weights of the unit at hand are there
  const auto gather = [&](std::size_t unit, double not_before) {
    if (units[unit].gather_us <= 0) {
      gathered = 0;
      return;
    }
    lanes.data = std::max(lanes.data, not_before) + units[unit].gather_us;
    gathered = lanes.data;
  };
  if (gathers) gather(units.size() - 1, lanes.before);
  for (std::size_t unit = units.size(); unit-- > 0;) {
    const double arrived = gathered;
    if (gathers && unit > 0 && schedule.backward_prefetch == Prefetch::pre) gather(unit - 1, lanes.before);
    if (gathers) {
      lanes.weights_us += std::max(0.0, arrived - lanes.compute);
      lanes.compute = std::max(lanes.compute, arrived);
    }
    lanes.compute += units[unit].backward_us;
    lanes.before_that = lanes.before;
    lanes.before = lanes.compute;
    if (gathers && unit > 0 && schedule.backward_prefetch != Prefetch::pre) gather(unit - 1, lanes.compute);
    if (reduces && units[unit].reduce_us > 0) {
      lanes.data = std::max(lanes.data, lanes.compute) + units[unit].reduce_us;
    }
  }
}

std::size_t ScheduleEvaluator::ShapeHash::operator()(const PipelineShape& shape) const {
  std::uint64_t state = shape.micro_batches;
  for (const std::uint64_t part : {std::uint64_t{shape.stages}, std::uint64_t{shape.virtual_stages},
                                   static_cast<std::uint64_t>(shape.schedule)})
    state = (state ^ part) * 0x9e3779b97f4a7c15ULL;
  return static_cast<std::size_t>(state ^ state >> 32U);
}

const ScheduleEvaluator::EncodedWalk& ScheduleEvaluator::walk_of(const PipelineShape& shape) {
  if (const auto known = walks_.find(shape); known != walks_.end()) return known->second;
  if (steps_of_walks_ > kMostSteps) {
    walks_.clear();
    steps_of_walks_ = 0;
  }
  EncodedWalk& encoded = walks_.try_emplace(shape, EncodedWalk{pipeline_walk(shape), {}}).first->second;
  steps_of_walks_ += encoded.walk.steps.size();
  const std::uint32_t micro_batches = shape.micro_batches;
  const std::uint32_t cells = shape.stages * shape.virtual_stages * micro_batches;
  encoded.ops.reserve(encoded.walk.steps.size());
  for (const WalkStep& step : encoded.walk.steps) {
    const bool is_forward = step.kind == PassKind::forward, is_backward = step.kind == PassKind::backward;
    const std::uint32_t first = is_forward ? 0 : cells;
    Op op;
    op.in = step.receives ? first + step.cell : 2 * cells;
    op.out = first + (is_forward ? step.cell + micro_batches : step.cell - micro_batches);
    static_assert(sizeof(Lanes) == kLanesPerStage * sizeof(double));
    op.compute = static_cast<std::uint16_t>(kLanesPerStage * step.stage);
    op.send = static_cast<std::uint16_t>(op.compute + (is_forward ? kSendForward : kSendBackward));
    op.hop = step.stays ? 2 : step.wraps ? 1 : 0;
    op.pass = static_cast<std::uint16_t>(3 * step.chunk + static_cast<std::uint16_t>(step.kind));
    unsigned is = 0;
    if (step.sends) is |= kSends;
    if (is_forward) is |= kForward;
    if (is_backward) is |= kBackward;
    if (is_forward && step.first) is |= kFirstForward;
    if (is_backward && step.last) is |= kLastBackward;
    op.is = static_cast<std::uint8_t>(is);
    encoded.ops.push_back(op);
  }
  return encoded;
}

// A pass beside which weights or gradients travel.
void ScheduleEvaluator::pass_by_units(const StepSchedule& schedule, const Op& op, Lanes& lanes) {
  const ScheduleChunk& chunk = schedule.chunks[op.pass / 3];
  if ((op.is & kForward) != 0) {
    gather_and_forward(schedule, chunk, lanes);
    return;
  }
  const bool reduces = schedule.reduce == GradientReduce::every_backward ||
                       (schedule.reduce == GradientReduce::last_backward && (op.is & kLastBackward) != 0);
  backward_and_reduce(schedule, chunk, reduces, lanes);
}

// `blocks`: the sender waits for its transfers, so that none is under way when the next one begins.
template <bool blocks, bool delayed>
void ScheduleEvaluator::go(const StepSchedule& schedule, const EncodedWalk& encoded, std::size_t from,
                           std::size_t to) {
  unsigned by_units = 0;
  if (schedule.gather == WeightGather::first_forward) by_units |= kFirstForward;
  if (schedule.gather == WeightGather::every_forward) {
    by_units |= kForward;
    if (schedule.gather_backward) by_units |= kBackward;
  }
  if (schedule.reduce == GradientReduce::last_backward) by_units |= kLastBackward;
  if (schedule.reduce == GradientReduce::every_backward) by_units |= kBackward;
  // One stage hands its micro-batches to itself.
  const bool piped = schedule.shape.stages > 1;
  const double hop_us[] = {piped ? schedule.boundary_us : 0, piped ? schedule.boundary_wrap_us : 0, 0};
  // Plain pointers: the compiler cannot know that the vectors stay where they are.
  static_assert(sizeof(ChunkSum) == 3 * sizeof(double));
  const Op* const ops = encoded.ops.data();
  const double* const pass_us = &sums_.data()->forward;
  double* const lane_us = &lanes_.data()->compute;
  double* const ready = ready_.data();
  const double* const delay_us = schedule.delay_us.data();
  for (std::size_t i = from; i < to; ++i) {
    const Op& op = ops[i];
    const unsigned is = op.is;
    double compute = std::max(lane_us[op.compute], ready[op.in]);
    if ((is & by_units) != 0) {
      Lanes& lanes = lanes_[op.compute / kLanesPerStage];
      lanes.compute = compute;
      pass_by_units(schedule, op, lanes);
      compute = lanes.compute;
    } else {
      compute += pass_us[op.pass];
    }
    if ((is & kSends) != 0) {
      const double hop = hop_us[op.hop];
      double arrival = compute;
      if constexpr (blocks) {
        arrival = compute = compute + hop;
      } else if (piped && op.hop != 2) {
        arrival = lane_us[op.send] = std::max(lane_us[op.send], compute) + hop;
      }
      if constexpr (delayed) arrival += delay_us[op.pass / 3 - ((is & kForward) != 0 ? 0 : 1)];
      ready[op.out] = arrival;
    }
    lane_us[op.compute] = compute;
  }
  passes_walked_ += to - from;
}

bool ScheduleEvaluator::moved_alike(const WalkRound& round, std::size_t cells, double by) const {
  constexpr std::array kLanes = {&Lanes::compute,     &Lanes::data,         &Lanes::before,
                                 &Lanes::before_that, &Lanes::send_forward, &Lanes::send_backward};
  for (std::size_t s = 0; s < lanes_.size(); ++s) {
    for (const auto lane : kLanes) {
      const double now = lanes_[s].*lane, moved = now - lanes_before_[s].*lane;
      // A lane that stands still is not used in these rounds.
      if (moved != 0 && std::abs(moved - by) > kAlike * now) return false;
    }
  }
  const auto messages_moved = [&](std::size_t first, const std::vector<std::uint32_t>& under_way) {
    return std::all_of(under_way.begin(), under_way.end(), [&](std::uint32_t cell) {
      const double now = ready_[first + cell], before = ready_[first + cell - round.micro_batches];
      return std::abs(now - before - by) <= kAlike * now;
    });
  };
  return messages_moved(0, round.forward_under_way) && messages_moved(cells, round.backward_under_way);
}

void ScheduleEvaluator::add_rounds(const WalkRound& round, std::size_t cells, double count, double by) {
  constexpr std::array kLanes = {&Lanes::compute,     &Lanes::data,         &Lanes::before,
                                 &Lanes::before_that, &Lanes::send_forward, &Lanes::send_backward};
  for (std::size_t s = 0; s < lanes_.size(); ++s) {
    Lanes& now = lanes_[s];
    const Lanes& before = lanes_before_[s];
    for (const auto lane : kLanes) {
      if (now.*lane != before.*lane) now.*lane += count * by;
    }
    now.weights_us += count * (now.weights_us - before.weights_us);
  }
  for (const std::uint32_t cell : round.forward_under_way) ready_[cell] += count * by;
  for (const std::uint32_t cell : round.backward_under_way) ready_[cells + cell] += count * by;
}

bool ScheduleEvaluator::go(const StepSchedule& schedule, const EncodedWalk& encoded) {
  const PipelineWalk& walk = encoded.walk;
  lanes_.assign(schedule.shape.stages, {});
  const std::size_t cells = schedule.chunks.size() * walk.shape.micro_batches;
  if (ready_.size() <= 2 * cells) ready_.resize(2 * cells + 1);  // entries are written before they are read
  ready_[2 * cells] = 0;
  const auto steps = [&](std::size_t from, std::size_t to) {
    if (schedule.delay_us.empty()) {
      schedule.boundary_blocks ? go<true, false>(schedule, encoded, from, to)
                               : go<false, false>(schedule, encoded, from, to);
    } else {
      schedule.boundary_blocks ? go<true, true>(schedule, encoded, from, to)
                               : go<false, true>(schedule, encoded, from, to);
    }
  };
  const std::uint32_t left_out = schedule.shape.micro_batches - walk.shape.micro_batches;
  if (left_out == 0) {
    steps(0, walk.steps.size());
    return true;
  }
  if (!walk.round) return false;
  const WalkRound& round = *walk.round;
  steps(0, round.begin);
  lanes_before_ = lanes_;
  steps(round.begin, round.end);
  const double by = lanes_.front().compute - lanes_before_.front().compute;
  if (!moved_alike(round, cells, by)) return false;
  add_rounds(round, cells, static_cast<double>(left_out) / round.micro_batches, by);
  steps(round.end, walk.steps.size());
  return true;
}

const StepTimes& ScheduleEvaluator::evaluate(const StepSchedule& schedule) {
  sums_.assign(schedule.chunks.size(), {});
  for (std::size_t c = 0; c < sums_.size(); ++c) {
    for (const ScheduleUnit& unit : schedule.chunks[c].units) {
      sums_[c].forward += unit.forward_us;
      sums_[c].backward += unit.backward_us;
      sums_[c].weight_gradient += unit.weight_gradient_us;
    }
  }
  passes_walked_ = 0;
  PipelineShape shape = schedule.shape;
  shape.micro_batches = short_walk_micro_batches(schedule.shape);
  while (!go(schedule, walk_of(shape))) {
    const std::uint32_t of_round = round_micro_batches(shape);
    const std::uint32_t more = shape.micro_batches / of_round * of_round;
    shape.micro_batches = std::min(schedule.shape.micro_batches, shape.micro_batches + more);
  }
  finish(schedule);
  return result_;
}

// Gradients, the common norm, the update, the weights; and what every stage spent its time on.
void ScheduleEvaluator::finish(const StepSchedule& schedule) {
  const std::uint32_t stages = schedule.shape.stages;
  const auto n_chunks = static_cast<std::uint32_t>(sums_.size());
  const double micro_batches = schedule.shape.micro_batches;
  result_.stages.assign(stages, {});
  double all_reduced = 0;
  for (std::uint32_t s = 0; s < stages; ++s) {
    Lanes& lanes = lanes_[s];
    StageTimes& times = result_.stages[s];
    for (std::uint32_t i = 0; i < schedule.shape.virtual_stages; ++i) {
      const std::uint32_t c = chunk_of_stage(schedule.shape.schedule, stages, s, i);
      const ChunkSum& sum = sums_[c];
      times.compute_us += micro_batches * (sum.forward + sum.backward + sum.weight_gradient);
      if (!schedule.boundary_blocks || stages == 1) continue;
      const auto hop_behind = [&](std::uint32_t chunk) {
        if (is_v_shaped(schedule.shape.schedule)) return chunk + 1 == stages ? 0.0 : schedule.boundary_us;
        return (chunk + 1) % stages == 0 ? schedule.boundary_wrap_us : schedule.boundary_us;
      };
      if (c + 1 < n_chunks) times.boundary_us += micro_batches * hop_behind(c);
      if (c > 0) times.boundary_us += micro_batches * hop_behind(c - 1);
    }
    times.weights_us = lanes.weights_us;
    times.passes_end_us = lanes.compute;
    times.idle_us =
        std::max(0.0, times.passes_end_us - times.compute_us - times.boundary_us - times.weights_us);
    double reduced = std::max(lanes.compute, lanes.data);
    if (schedule.reduce == GradientReduce::at_end) reduced += schedule.reduce_at_end_us[s];
    lanes.data = reduced;
  }
  double tie_wait[2] = {0, 0};
  if (schedule.embedding_reduce_us > 0 && stages > 1) {
    // The stage that is done first waits for the other one: idle, not communication.
    double &first = lanes_.front().data, &last = lanes_.back().data;
    const double both = std::max(first, last);
    tie_wait[0] = both - first;
    tie_wait[1] = both - last;
    first = last = both + schedule.embedding_reduce_us;
  }
  for (const Lanes& lanes : lanes_) all_reduced = std::max(all_reduced, lanes.data);
  double end = 0, busiest = -1;
  for (std::uint32_t s = 0; s < stages; ++s) {
    const double reduced = lanes_[s].data;
    StageTimes& times = result_.stages[s];
    const double waited = s == 0 ? tie_wait[0] : s + 1 == stages ? tie_wait[1] : 0.0;
    times.reduce_us = reduced - times.passes_end_us - waited;
    times.idle_us += waited;
    const double start = schedule.optimizer_waits_for_all ? all_reduced : reduced;
    times.idle_us += start - reduced;
    times.optimizer_us = schedule.optimizer_us[s];
    times.gather_us = schedule.gather == WeightGather::after_step ? schedule.gather_after_step_us[s] : 0.0;
    times.end_us = start + times.optimizer_us + times.gather_us;
    end = std::max(end, times.end_us);
    const double busy = times.compute_us + times.weights_us + times.boundary_us;
    if (busy > busiest) {
      busiest = busy;
      result_.critical_stage = s;
    }
  }
  result_.step_us = end + schedule.fixed_us;
}

}  // namespace stepcast

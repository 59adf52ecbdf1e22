// Evaluates schedules in three stages: the units of each chunk are summed; the walk of the shape is
// evaluated, with omitted rounds added if all lanes advance evenly; finish() adds the end of the step.
// Several schedules with equal walks are evaluated together, with their values adjacent in memory.
#include "stepcast/predict/step_schedule.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <tuple>

namespace stepcast {
namespace {

// Relative tolerance, for rounding, when comparing how far lanes have advanced over a round.
constexpr double kAlike = 1e-13;
// Limit on the total number of steps of cached walks, at 40 bytes each. A search over layouts uses some
// hundred shapes again and again.
constexpr std::size_t kMostSteps = 500'000;

// Entries of ScheduleEvaluator::Lanes: number of entries, number of entries that are moments, and indices.
constexpr unsigned kLanesPerStage = 8, kMovingLanes = 6, kData = 1, kSendForward = 4, kSendBackward = 5,
                   kWeights = 6;
// Number of schedules evaluated together. Measured: more of them exceed the cache.
constexpr std::size_t kWidth = 4;

// Properties of a pass of a walk, as bits.
enum OpIs : std::uint8_t {
  kSends = 1,  // to the next chunk (forward) or the previous one (backward)
  kForward = 2,
  kBackward = 4,
  kFirstForward = 8,
  kLastBackward = 16,
};

// Element-wise maximum of two arrays. Written with vectors of two, because compilers do not find that form.
template <std::size_t width>
void later(const double* a, const double* b, double* out) {
  if constexpr (width == 1) {
    *out = std::max(*a, *b);
  } else {
    using Pair = double __attribute__((vector_size(16)));
    for (std::size_t w = 0; w < width; w += 2) {
      Pair one, other;
      std::memcpy(&one, a + w, sizeof one);
      std::memcpy(&other, b + w, sizeof other);
      one = one < other ? other : one;
      std::memcpy(out + w, &one, sizeof one);
    }
  }
}

// Number of micro-batches of the next longer walk: about twice as many, at most all.
std::uint32_t longer_walk(const PipelineShape& shape, std::uint32_t micro_batches) {
  const std::uint32_t of_round = round_micro_batches(shape);
  return std::min(shape.micro_batches, micro_batches + micro_batches / of_round * of_round);
}

}  // namespace

// Runs the forward of a chunk unit by unit. Gathering of weights overlaps computation.
void ScheduleEvaluator::gather_and_forward(const StepSchedule& schedule, const ScheduleChunk& chunk,
                                           Lanes& lanes) {
  const bool paced = schedule.gather == WeightGather::every_forward;
  for (const ScheduleUnit& unit : chunk.units) {
    if (unit.gather_us > 0) {
      // FSDP allows at most two gathered units that are not yet used. Buckets of a distributed optimizer have
      // no such limit.
      lanes.data = std::max(lanes.data, paced ? lanes.before_that : 0.0) + unit.gather_us;
      lanes.weights_us += std::max(0.0, lanes.data - lanes.compute);
      lanes.compute = std::max(lanes.compute, lanes.data);
    }
    lanes.compute += unit.forward_us;
    lanes.before_that = lanes.before;
    lanes.before = lanes.compute;
  }
}

// Runs the backward of a chunk unit by unit in reverse order. Gathering and reducing overlap computation.
void ScheduleEvaluator::backward_and_reduce(const StepSchedule& schedule, const ScheduleChunk& chunk,
                                            bool reduces, Lanes& lanes) {
  const bool gathers = schedule.gather == WeightGather::every_forward && schedule.gather_backward;
  const std::vector<ScheduleUnit>& units = chunk.units;
  double gathered = 0;  // when the weights of the current unit have arrived
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
    // The message of a forward is stored in the cell of the receiving chunk, one row of micro-batches after
    // the sender's; that of a backward in the row before.
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

// Evaluates a pass with overlapping transfers of weights or gradients, which needs its single units.
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

// Schedules evaluated together. Every time is an array of `width` values.
template <std::size_t width>
struct ScheduleEvaluator::Batch {
  std::array<const StepSchedule*, width> schedules{};
  using Times = std::array<double, width>;
  // Kinds of passes (bits of OpIs) with overlapping transfers: per schedule, and for any schedule.
  std::array<unsigned, width> by_units{};
  unsigned by_units_of_any = 0;
  bool piped = false;
  std::array<Times, 3> hop_us{};  // to a neighbour; between last and first stage; within a stage

  explicit Batch(std::span<const StepSchedule* const, width> given) {
    std::ranges::copy(given, schedules.begin());
    // With one stage there are no transfers.
    piped = schedules.front()->shape.stages > 1;
    for (std::size_t i = 0; i < width; ++i) {
      const StepSchedule& schedule = *schedules[i];
      // A pass needs its single units if any transfer overlaps it.
      unsigned& by = by_units[i];
      if (schedule.gather == WeightGather::first_forward) by |= kFirstForward;
      if (schedule.gather == WeightGather::every_forward) {
        by |= kForward;
        if (schedule.gather_backward) by |= kBackward;
      }
      if (schedule.reduce == GradientReduce::last_backward) by |= kLastBackward;
      if (schedule.reduce == GradientReduce::every_backward) by |= kBackward;
      by_units_of_any |= by;
      hop_us[0][i] = piped ? schedule.boundary_us : 0;
      hop_us[1][i] = piped ? schedule.boundary_wrap_us : 0;
    }
  }
};

// `blocks`: the sender waits for its transfer, so none is in flight when the next one begins. `delayed`:
// messages have an additional latency.
template <bool blocks, bool delayed, std::size_t width>
void ScheduleEvaluator::go(const Batch<width>& batch, const EncodedWalk& encoded, std::size_t from,
                           std::size_t to) {
  // Plain pointers, because the compiler cannot prove that the vectors are not reallocated.
  const Op* const ops = encoded.ops.data();
  const double* const pass_us = sums_.data();
  double* const lane_us = lanes_.data();
  double* const ready = ready_.data();
  typename Batch<width>::Times compute, other;
  for (std::size_t i = from; i < to; ++i) {
    const Op& op = ops[i];
    const unsigned is = op.is;
    double* const lane = lane_us + width * op.compute;
    const double* const in = ready + width * op.in;
    const double* const pass = pass_us + width * op.pass;
    later<width>(lane, in, compute.data());
    if ((is & batch.by_units_of_any) != 0) {
      for (std::size_t w = 0; w < width; ++w) {
        if ((is & batch.by_units[w]) == 0) {
          compute[w] += pass[w];
          continue;
        }
        std::array<double, kLanesPerStage> of_stage;
        for (std::size_t l = 0; l < kLanesPerStage; ++l) of_stage[l] = lane[l * width + w];
        of_stage[0] = compute[w];
        // The lanes of this schedule are gathered from the strided arrays, updated, and scattered back.
        Lanes lanes = std::bit_cast<Lanes>(of_stage);
        pass_by_units(*batch.schedules[w], op, lanes);
        of_stage = std::bit_cast<std::array<double, kLanesPerStage>>(lanes);
        compute[w] = of_stage[0];
        for (std::size_t l = 1; l < kLanesPerStage; ++l) lane[l * width + w] = of_stage[l];
      }
    } else {
      for (std::size_t w = 0; w < width; ++w) compute[w] += pass[w];
    }
    if ((is & kSends) != 0) {
      const typename Batch<width>::Times& hop = batch.hop_us[op.hop];
      double* const out = ready + width * op.out;
      other = compute;
      if constexpr (blocks) {
        for (std::size_t w = 0; w < width; ++w) compute[w] += hop[w];
        other = compute;
        // The transfer occupies a lane of its own; consecutive transfers queue.
      } else if (batch.piped && op.hop != 2) {
        double* const send = lane_us + width * op.send;
        later<width>(send, compute.data(), other.data());
        for (std::size_t w = 0; w < width; ++w) other[w] += hop[w];
        for (std::size_t w = 0; w < width; ++w) send[w] = other[w];
      }
      if constexpr (delayed) {
        for (std::size_t w = 0; w < width; ++w)
          other[w] += batch.schedules[w]->delay_us[op.pass / 3 - ((is & kForward) != 0 ? 0 : 1)];
      }
      for (std::size_t w = 0; w < width; ++w) out[w] = other[w];
    }
    for (std::size_t w = 0; w < width; ++w) lane[w] = compute[w];
  }
  passes_walked_ += to - from;
}

// Whether all lanes and messages in flight of schedule `w` have advanced by `by` over the round.
bool ScheduleEvaluator::moved_alike(const WalkRound& round, std::size_t cells, double by, std::size_t width,
                                    std::size_t w) const {
  for (std::size_t stage = 0; stage < lanes_.size(); stage += kLanesPerStage * width) {
    for (std::size_t l = 0; l < kMovingLanes; ++l) {
      const std::size_t at = stage + l * width + w;
      const double now = lanes_[at], moved = now - lanes_before_[at];
      // A lane that did not advance is not used in these rounds.
      if (moved != 0 && std::abs(moved - by) > kAlike * now) return false;
    }
  }
  const auto messages_moved = [&](std::size_t first, const std::vector<std::uint32_t>& under_way) {
    return std::all_of(under_way.begin(), under_way.end(), [&](std::uint32_t cell) {
      const double now = ready_[(first + cell) * width + w],
                   before = ready_[(first + cell - round.micro_batches) * width + w];
      return std::abs(now - before - by) <= kAlike * now;
    });
  };
  return messages_moved(0, round.forward_under_way) && messages_moved(cells, round.backward_under_way);
}

// Advances lanes and messages in flight of schedule `w` by `count` rounds of `by` microseconds.
void ScheduleEvaluator::add_rounds(const WalkRound& round, std::size_t cells, double count, double by,
                                   std::size_t width, std::size_t w) {
  for (std::size_t stage = 0; stage < lanes_.size(); stage += kLanesPerStage * width) {
    for (std::size_t l = 0; l < kMovingLanes; ++l) {
      const std::size_t at = stage + l * width + w;
      if (lanes_[at] != lanes_before_[at]) lanes_[at] += count * by;
    }
    const std::size_t at = stage + kWeights * width + w;
    lanes_[at] += count * (lanes_[at] - lanes_before_[at]);
  }
  for (const std::uint32_t cell : round.forward_under_way) ready_[cell * width + w] += count * by;
  for (const std::uint32_t cell : round.backward_under_way) ready_[(cells + cell) * width + w] += count * by;
}

template <std::size_t width>
std::bitset<width> ScheduleEvaluator::go(const Batch<width>& batch, const EncodedWalk& encoded) {
  const PipelineWalk& walk = encoded.walk;
  const StepSchedule& first = *batch.schedules.front();
  lanes_.assign(width * kLanesPerStage * first.shape.stages, 0);
  const std::size_t cells = first.chunks.size() * walk.shape.micro_batches;
  if (ready_.size() < width * (2 * cells + 1))
    ready_.resize(width * (2 * cells + 1));  // entries are written before they are read
  std::fill_n(ready_.begin() + static_cast<std::ptrdiff_t>(width * 2 * cells), width, 0.0);
  const auto steps = [&](std::size_t from, std::size_t to) {
    if (first.delay_us.empty()) {
      first.boundary_blocks ? go<true, false>(batch, encoded, from, to)
                            : go<false, false>(batch, encoded, from, to);
    } else {
      first.boundary_blocks ? go<true, true>(batch, encoded, from, to)
                            : go<false, true>(batch, encoded, from, to);
    }
  };
  std::bitset<width> right;
  const auto left_out = [&](std::size_t w) {
    return batch.schedules[w]->shape.micro_batches - walk.shape.micro_batches;
  };
  // Schedules without omitted rounds are exact without comparison of rounds.
  for (std::size_t w = 0; w < width; ++w) right[w] = left_out(w) == 0;
  if (right.all() || !walk.round) {
    if (right.any()) steps(0, walk.steps.size());
    return right;
  }
  const WalkRound& round = *walk.round;
  steps(0, round.begin);
  // State at the begin of the round, to compare with its end.
  lanes_before_ = lanes_;
  steps(round.begin, round.end);
  for (std::size_t w = 0; w < width; ++w) {
    if (right[w]) continue;
    const double by = lanes_[w] - lanes_before_[w];
    right[w] = moved_alike(round, cells, by, width, w);
    if (right[w])
      add_rounds(round, cells, static_cast<double>(left_out(w)) / round.micro_batches, by, width, w);
  }
  if (right.any()) steps(round.end, walk.steps.size());
  return right;
}

// Sums the units of each chunk of a schedule, for passes without overlapping transfers.
void ScheduleEvaluator::sum_units(const StepSchedule& schedule, std::size_t width, std::size_t w) {
  for (std::size_t c = 0; c < schedule.chunks.size(); ++c) {
    std::array<double, 3> sum{};
    for (const ScheduleUnit& unit : schedule.chunks[c].units) {
      sum[0] += unit.forward_us;
      sum[1] += unit.backward_us;
      sum[2] += unit.weight_gradient_us;
    }
    for (std::size_t kind = 0; kind < sum.size(); ++kind) sums_[(3 * c + kind) * width + w] = sum[kind];
  }
}

const StepTimes& ScheduleEvaluator::evaluate(const StepSchedule& schedule) {
  sums_.assign(3 * schedule.chunks.size(), 0);
  sum_units(schedule, 1, 0);
  passes_walked_ = 0;
  PipelineShape shape = schedule.shape;
  shape.micro_batches = short_walk_micro_batches(schedule.shape);
  const Batch<1> alone{std::array{&schedule}};
  // Ends at the latest when the walk contains all micro-batches, since no round is omitted then.
  while (go(alone, walk_of(shape)).none()) {
    shape.micro_batches = longer_walk(schedule.shape, shape.micro_batches);
  }
  finish(schedule, 1, 0);
  return result_;
}

void ScheduleEvaluator::evaluate(std::span<const StepSchedule* const> schedules, std::span<double> step_us) {
  struct Walked {
    std::size_t schedule;
    std::uint32_t micro_batches;
  };
  std::vector<Walked> left, longer;
  for (std::size_t i = 0; i < schedules.size(); ++i)
    left.push_back({i, short_walk_micro_batches(schedules[i]->shape)});
  // Schedules with equal keys can be evaluated together.
  const auto key = [&](const Walked& of) {
    const StepSchedule& s = *schedules[of.schedule];
    return std::tuple{s.shape.stages,    s.shape.virtual_stages, s.shape.schedule, s.shape.one_more_forward,
                      s.boundary_blocks, s.delay_us.empty(),     of.micro_batches};
  };
  const auto walk = [&]<std::size_t width>(std::array<const StepSchedule*, width> side_by_side,
                                           std::uint32_t micro_batches) {
    sums_.resize(3 * width * side_by_side.front()->chunks.size());
    for (std::size_t w = 0; w < width; ++w) sum_units(*side_by_side[w], width, w);
    PipelineShape shape = side_by_side.front()->shape;
    shape.micro_batches = micro_batches;
    return go(Batch<width>{side_by_side}, walk_of(shape));
  };
  for (; !left.empty(); left.swap(longer), longer.clear()) {
    std::ranges::stable_sort(left, std::less{}, key);
    for (std::size_t i = 0, n = 0; i < left.size(); i += n) {
      for (n = 1; n < kWidth && i + n < left.size() && key(left[i + n]) == key(left[i]);) ++n;
      std::array<const StepSchedule*, kWidth> side_by_side;  // unused places repeat the last schedule
      for (std::size_t w = 0; w < kWidth; ++w)
        side_by_side[w] = schedules[left[i + std::min(w, n - 1)].schedule];
      // A single schedule is evaluated with width 1, which is cheaper than repeating it.
      const bool alone = n == 1;
      const auto right = alone ? walk(std::array{side_by_side[0]}, left[i].micro_batches).to_ulong()
                               : walk(side_by_side, left[i].micro_batches).to_ulong();
      for (std::size_t w = 0; w < n; ++w) {
        Walked& one = left[i + w];
        if ((right >> w & 1U) != 0) {
          finish(*side_by_side[w], alone ? 1 : kWidth, w);
          step_us[one.schedule] = result_.step_us;
        } else {
          longer.push_back({one.schedule, longer_walk(side_by_side[w]->shape, one.micro_batches)});
        }
      }
    }
  }
}

// Computes the end of the step: gradient reduction, norm, update and gathering of weights. Splits the time of
// every stage into its parts.
void ScheduleEvaluator::finish(const StepSchedule& schedule, std::size_t width, std::size_t w) {
  const std::uint32_t stages = schedule.shape.stages;
  const auto n_chunks = static_cast<std::uint32_t>(schedule.chunks.size());
  const double micro_batches = schedule.shape.micro_batches;
  result_.stages.assign(stages, {});
  double all_reduced = 0;
  reduced_.resize(stages);
  const auto lane = [&](std::uint32_t s, std::size_t l) {
    return lanes_[(kLanesPerStage * s + l) * width + w];
  };
  for (std::uint32_t s = 0; s < stages; ++s) {
    StageTimes& times = result_.stages[s];
    for (std::uint32_t i = 0; i < schedule.shape.virtual_stages; ++i) {
      const std::uint32_t c = chunk_of_stage(schedule.shape.schedule, stages, s, i);
      const double* const sum = sums_.data() + std::size_t{3 * c} * width + w;
      times.compute_us += micro_batches * (sum[0] + sum[width] + sum[2 * width]);
      if (!schedule.boundary_blocks || stages == 1) continue;
      const auto hop_behind = [&](std::uint32_t chunk) {
        if (is_v_shaped(schedule.shape.schedule)) return chunk + 1 == stages ? 0.0 : schedule.boundary_us;
        return (chunk + 1) % stages == 0 ? schedule.boundary_wrap_us : schedule.boundary_us;
      };
      if (c + 1 < n_chunks) times.boundary_us += micro_batches * hop_behind(c);
      if (c > 0) times.boundary_us += micro_batches * hop_behind(c - 1);
    }
    times.weights_us = lane(s, kWeights);
    times.passes_end_us = lane(s, 0);
    times.idle_us =
        std::max(0.0, times.passes_end_us - times.compute_us - times.boundary_us - times.weights_us);
    reduced_[s] = std::max(times.passes_end_us, lane(s, kData));
    if (schedule.reduce == GradientReduce::at_end) reduced_[s] += schedule.reduce_at_end_us[s];
  }
  double tie_wait[2] = {0, 0};
  if (schedule.embedding_reduce_us > 0 && stages > 1) {
    // The stage that is done first waits for the other one. That is idle time, not communication.
    double &first = reduced_.front(), &last = reduced_.back();
    const double both = std::max(first, last);
    tie_wait[0] = both - first;
    tie_wait[1] = both - last;
    first = last = both + schedule.embedding_reduce_us;
  }
  for (const double reduced : reduced_) all_reduced = std::max(all_reduced, reduced);
  double end = 0, busiest = -1;
  for (std::uint32_t s = 0; s < stages; ++s) {
    const double reduced = reduced_[s];
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

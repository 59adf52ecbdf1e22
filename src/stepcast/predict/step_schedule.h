// The time line of one step, given how long its parts take: pipeline order, transfers of weights and
// gradients beside computation, optimizer. Arithmetic only; step_model.h prices the parts.
//
// The same rules as the Program of predict/step_program.h, written as recurrences over lane times, so that a
// layout costs microseconds. Tests hold both against each other.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "stepcast/predict/pipeline_walk.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/pipeline_schedule.h"

namespace stepcast {

// When a rank gets the weights that others hold a share of.
enum class WeightGather : std::uint8_t {
  none,           // every rank has them all
  after_step,     // at the end of the step, nothing beside it (ZeRO-1)
  first_forward,  // layer by layer beside the first forward of a chunk (ZeRO-1 with overlap, ZeRO-3 with a
                  // pipeline)
  every_forward,  // and again before every backward if `gather_backward` (FSDP)
};

// When gradients are reduced.
enum class GradientReduce : std::uint8_t {
  none,
  at_end,          // after the last backward, in one piece
  last_backward,   // layer by layer beside the last backward
  every_backward,  // layer by layer, after every micro-batch (FSDP)
};

// A layer, the embedding or the head on one rank, for one micro-batch. Times in microseconds.
struct ScheduleUnit {
  double forward_us = 0, backward_us = 0;  // backward without held-back weight gradients
  double weight_gradient_us = 0;           // zero-bubble schedules
  double gather_us = 0, reduce_us = 0;     // weights and gradients of the unit
  friend bool operator==(const ScheduleUnit&, const ScheduleUnit&) = default;
};

struct ScheduleChunk {
  std::vector<ScheduleUnit> units;  // in the order of the model
  friend bool operator==(const ScheduleChunk&, const ScheduleChunk&) = default;
};

struct StepSchedule {
  PipelineShape shape;
  std::vector<ScheduleChunk> chunks;  // in the order of the model, on stage_of_chunk()
  double boundary_us = 0;             // activations, or their gradients, from one stage to the next
  double boundary_wrap_us = 0;        // from the last stage back to the first (interleaved)
  bool boundary_blocks = true;        // the sender waits for its transfer
  // [chunk] how long what is sent between it and the next one is on its way besides; empty: no time.
  std::vector<double> delay_us;
  WeightGather gather = WeightGather::none;
  bool gather_backward = false;
  Prefetch backward_prefetch = Prefetch::pre;
  GradientReduce reduce = GradientReduce::none;
  // Of every stage: all gradients in one piece (at_end); clipping and update; all weights (after_step).
  std::vector<double> reduce_at_end_us, optimizer_us, gather_after_step_us;
  double embedding_reduce_us = 0;       // tied embeddings: first and last stage
  bool optimizer_waits_for_all = true;  // the gradient norm is that of all stages
  double fixed_us = 0;
  friend bool operator==(const StepSchedule&, const StepSchedule&) = default;
};

struct StageTimes {
  double compute_us = 0;                   // forward, backward and weight gradients
  double weights_us = 0;                   // computation waits for weights
  double boundary_us = 0;                  // blocked in transfers to neighbours
  double idle_us = 0;                      // nothing to do: pipeline bubble, slower neighbours
  double passes_end_us = 0;                // computation of the last pass ends
  double reduce_us = 0;                    // gradients that nothing hides
  double optimizer_us = 0, gather_us = 0;  // update; weights after it
  double end_us = 0;
};

struct StepTimes {
  double step_us = 0;
  std::vector<StageTimes> stages;
  // The stage that decides: last to end, of several the busiest.
  std::uint32_t critical_stage = 0;
};

// Holds the memory of evaluations, to be used again.
//
// Between the first micro-batches and the last ones every stage does the same again and again. A step of many
// micro-batches is therefore evaluated as one of few: if all lanes and all messages under way have moved by
// the same time over a round, every further round moves them by that time, too (the rules are maxima and sums
// of constants), and the rounds left out are added at once. Otherwise the few become twice as many, up to
// all.
class ScheduleEvaluator {
 public:
  // `schedule.shape` must pass check().
  const StepTimes& evaluate(const StepSchedule& schedule);
  // How long the steps take, to the same bits; those whose passes run in one order side by side, as many as a processor adds
  // up at once.
  void evaluate(std::span<const StepSchedule* const> schedules, std::span<double> step_us);
  // Passes that the last evaluation went through one by one.
  [[nodiscard]] std::size_t passes_walked() const { return passes_walked_; }

 private:
  struct Lanes {
    double compute = 0, data = 0;        // free from
    double before = 0, before_that = 0;  // ends of the last two units
    double send_forward = 0, send_backward = 0;
    double weights_us = 0;  // computation has waited for weights so long
    double unused = 0;      // eight in all: a place is found by a shift
  };
  // A step of a walk as places in lists, so that most steps are a maximum and one or two sums.
  struct Op {
    std::uint32_t in = 0, out = 0;        // of ready_; what receives nothing reads a zero
    std::uint16_t compute = 0, send = 0;  // of the lanes, eight for every stage
    std::uint16_t pass = 0;               // of the sums, three for every chunk
    std::uint8_t is = 0;                  // bits of OpIs
    std::uint8_t hop = 0;                 // 1: from the last stage to the first, or back; 2: to its own stage
  };
  struct EncodedWalk {
    PipelineWalk walk;
    std::vector<Op> ops;
  };

  template <std::size_t width>
  struct Batch;

  const EncodedWalk& walk_of(const PipelineShape& shape);
  void sum_units(const StepSchedule& schedule, std::size_t width, std::size_t w);
  // False for those of which the rounds that the walk leaves out cannot be added.
  template <std::size_t width>
  std::bitset<width> go(const Batch<width>& batch, const EncodedWalk& encoded);
  template <bool blocks, bool delayed, std::size_t width>
  void go(const Batch<width>& batch, const EncodedWalk& encoded, std::size_t from, std::size_t to);
  void pass_by_units(const StepSchedule& schedule, const Op& op, Lanes& lanes);
  // Of schedule `w` of `width` side by side.
  [[nodiscard]] bool moved_alike(const WalkRound& round, std::size_t cells, double by, std::size_t width,
                                 std::size_t w) const;
  void add_rounds(const WalkRound& round, std::size_t cells, double count, double by, std::size_t width,
                  std::size_t w);
  void finish(const StepSchedule& schedule, std::size_t width, std::size_t w);
  static void gather_and_forward(const StepSchedule& schedule, const ScheduleChunk& chunk, Lanes& lanes);
  static void backward_and_reduce(const StepSchedule& schedule, const ScheduleChunk& chunk, bool reduces,
                                  Lanes& lanes);

  struct ShapeHash {
    std::size_t operator()(const PipelineShape& shape) const;
  };
  std::unordered_map<PipelineShape, EncodedWalk, ShapeHash> walks_;
  std::size_t steps_of_walks_ = 0;
  // Of every time that of each schedule, one behind the other.
  std::vector<double> lanes_, lanes_before_;  // [stage, lane]
  std::vector<double> sums_;                  // [chunk, forward, backward or weight gradients]
  // When messages arrive: of forwards [chunk, micro-batch of the walk], of backwards behind them, and a zero.
  std::vector<double> ready_;
  std::vector<double> reduced_;  // [stage] gradients, of the schedule at hand
  std::size_t passes_walked_ = 0;
  StepTimes result_;
};

}  // namespace stepcast

// Computes the time line of one step from the durations of its parts: pipeline order, transfers of weights
// and gradients that overlap computation, optimizer. Arithmetic only; step_model.h prices the parts.
//
// The rules are the same as those of the Program in predict/step_program.h, written as recurrences over lane
// times, so that a layout takes microseconds. Tests compare both.
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

// When a rank gathers the weights that are sharded over other ranks.
enum class WeightGather : std::uint8_t {
  none,        // every rank has all weights
  after_step,  // at the end of the step, without overlap (ZeRO-1)
  // layer by layer, overlapping the first forward of a chunk (ZeRO-1 with overlap, ZeRO-3 with a pipeline)
  first_forward,
  every_forward,  // in every forward, and again in every backward if `gather_backward` (FSDP)
};

// When gradients are reduced.
enum class GradientReduce : std::uint8_t {
  none,
  at_end,          // after the last backward, in one piece, without overlap
  last_backward,   // layer by layer, overlapping the last backward
  every_backward,  // layer by layer, after every micro-batch (FSDP)
};

// Durations of a layer, the embedding or the head on one rank, for one micro-batch, in microseconds.
struct ScheduleUnit {
  double forward_us = 0, backward_us = 0;  // without weight gradients that are held back
  double weight_gradient_us = 0;           // held back (zero-bubble schedules)
  double gather_us = 0, reduce_us = 0;     // transfers of the weights and gradients of the unit
  friend bool operator==(const ScheduleUnit&, const ScheduleUnit&) = default;
};

// The units of one chunk: consecutive layers on one pipeline stage.
struct ScheduleChunk {
  std::vector<ScheduleUnit> units;  // in the order of the model
  friend bool operator==(const ScheduleChunk&, const ScheduleChunk&) = default;
};

// Everything that determines the time line of a step.
struct StepSchedule {
  PipelineShape shape;
  std::vector<ScheduleChunk> chunks;  // in the order of the model; chunk c is on stage_of_chunk(c)
  double boundary_us = 0;             // transfer of activations or their gradients to the next stage
  double boundary_wrap_us = 0;        // from the last stage back to the first (interleaved)
  bool boundary_blocks = true;        // the sender waits for its transfer
  // [chunk] additional latency of messages between this chunk and the next one; empty: 0.
  std::vector<double> delay_us;
  WeightGather gather = WeightGather::none;
  bool gather_backward = false;
  Prefetch backward_prefetch = Prefetch::pre;
  GradientReduce reduce = GradientReduce::none;
  // [stage] reduction of all gradients in one piece (at_end); clipping and update; gathering of all weights
  // (after_step).
  std::vector<double> reduce_at_end_us, optimizer_us, gather_after_step_us;
  double embedding_reduce_us = 0;       // reduction of tied embeddings between first and last stage
  bool optimizer_waits_for_all = true;  // the gradient norm needs all stages
  double fixed_us = 0;
  friend bool operator==(const StepSchedule&, const StepSchedule&) = default;
};

// The time of one stage, in microseconds. end_us is the sum of compute, weights, boundary, idle, reduce,
// optimizer and gather.
struct StageTimes {
  double compute_us = 0;                   // forwards, backwards and weight gradients
  double weights_us = 0;                   // computation waits for weights
  double boundary_us = 0;                  // blocking transfers to neighbours
  double idle_us = 0;                      // pipeline bubble and waiting for slower stages
  double passes_end_us = 0;                // computation of the last pass ends
  double reduce_us = 0;                    // gradient reduction that is not hidden
  double optimizer_us = 0, gather_us = 0;  // update; gathering of weights after it
  double end_us = 0;
};

// The result of an evaluation.
struct StepTimes {
  double step_us = 0;
  std::vector<StageTimes> stages;
  // The stage with the longest busy time: computation, waiting for weights and blocking transfers.
  std::uint32_t critical_stage = 0;
};

// Evaluates schedules. Its memory is reused between calls.
//
// Between the first and the last micro-batches every stage repeats the same passes. So a step of many
// micro-batches is evaluated with few of them. If all lanes and all messages in flight advance by the same
// time over a round, every further round advances them by that time as well, because the rules are maxima and
// sums of constants. The omitted rounds are then added at once. Otherwise the number of micro-batches is
// doubled, up to all.
class ScheduleEvaluator {
 public:
  // `schedule.shape` must pass check().
  const StepTimes& evaluate(const StepSchedule& schedule);
  // Step times of several schedules, bit-identical to single evaluations. Schedules with the same order of
  // passes are evaluated together with vector instructions.
  void evaluate(std::span<const StepSchedule* const> schedules, std::span<double> step_us);
  // Number of passes evaluated one by one in the last call.
  [[nodiscard]] std::size_t passes_walked() const { return passes_walked_; }

 private:
  // State of one stage, in microseconds since the begin of the step.
  struct Lanes {
    double compute = 0, data = 0;        // end of the last work on the lane
    double before = 0, before_that = 0;  // ends of the last two units
    double send_forward = 0, send_backward = 0;
    double weights_us = 0;  // total time that computation has waited for weights
    double unused = 0;      // pads to eight entries, so that indices are computed by a shift
  };
  // A pass of a walk with its indices into the arrays below. Most passes are then one maximum and one or two
  // sums.
  struct Op {
    std::uint32_t in = 0, out = 0;        // into ready_; a pass without a message reads a zero
    std::uint16_t compute = 0, send = 0;  // into lanes_, eight entries per stage
    std::uint16_t pass = 0;               // into sums_, three entries per chunk
    std::uint8_t is = 0;                  // bits of OpIs
    std::uint8_t hop = 0;  // 0: neighbour; 1: from the last stage to the first, or back; 2: same stage
  };
  // A walk and its passes as Ops.
  struct EncodedWalk {
    PipelineWalk walk;
    std::vector<Op> ops;
  };

  template <std::size_t width>
  struct Batch;

  // The walk of a shape, cached.
  const EncodedWalk& walk_of(const PipelineShape& shape);
  void sum_units(const StepSchedule& schedule, std::size_t width, std::size_t w);
  // Evaluates all passes and the omitted rounds. A bit is false if the rounds of that schedule do not advance
  // evenly; its result is then invalid.
  template <std::size_t width>
  std::bitset<width> go(const Batch<width>& batch, const EncodedWalk& encoded);
  // Evaluates the passes [from, to) of the walk.
  template <bool blocks, bool delayed, std::size_t width>
  void go(const Batch<width>& batch, const EncodedWalk& encoded, std::size_t from, std::size_t to);
  void pass_by_units(const StepSchedule& schedule, const Op& op, Lanes& lanes);
  // These are for schedule `w` of `width` evaluated together.
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
  // The arrays below contain one value per schedule evaluated together, adjacent in memory.
  std::vector<double> lanes_, lanes_before_;  // [stage, lane]
  std::vector<double> sums_;                  // [chunk, forward, backward or weight gradients]
  // [chunk][micro-batch of the walk] arrival times of messages: of forwards, then of backwards, then a zero.
  std::vector<double> ready_;
  std::vector<double> reduced_;  // [stage] end of gradient reduction, of the current schedule
  std::size_t passes_walked_ = 0;
  StepTimes result_;
};

}  // namespace stepcast

#include "stepcast/predict/step_schedule.h"

#include <algorithm>
#include <limits>

namespace stepcast {
namespace {

constexpr double kNotYet = std::numeric_limits<double>::infinity();

}  // namespace

void ScheduleEvaluator::forward(const StepSchedule& schedule, const ScheduleChunk& chunk, const ChunkSum& sum,
                                bool first, Stage& stage) {
  const bool paced = schedule.gather == WeightGather::every_forward;
  if (!paced && !(first && schedule.gather == WeightGather::first_forward)) {
    stage.compute += sum.forward;
    return;
  }
  for (const ScheduleUnit& unit : chunk.units) {
    if (unit.gather_us > 0) {
      // At most two units are gathered and not yet used: the limit of FSDP. Buckets of an optimizer's
      // weights have room of their own.
      stage.data = std::max(stage.data, paced ? stage.before_that : 0.0) + unit.gather_us;
      stage.times.weights_us += std::max(0.0, stage.data - stage.compute);
      stage.compute = std::max(stage.compute, stage.data);
    }
    stage.compute += unit.forward_us;
    stage.before_that = stage.before;
    stage.before = stage.compute;
  }
}

void ScheduleEvaluator::backward(const StepSchedule& schedule, const ScheduleChunk& chunk,
                                 const ChunkSum& sum, bool last, Stage& stage) {
  const bool gathers = schedule.gather == WeightGather::every_forward && schedule.gather_backward;
  const bool reduces = schedule.reduce == GradientReduce::every_backward ||
                       (last && schedule.reduce == GradientReduce::last_backward);
  if (!gathers && !reduces) {
    stage.compute += sum.backward;
    return;
  }
  const std::vector<ScheduleUnit>& units = chunk.units;
  double gathered = 0;  // weights of the unit at hand are there
  const auto gather = [&](std::size_t unit, double not_before) {
    if (units[unit].gather_us <= 0) {
      gathered = 0;
      return;
    }
    stage.data = std::max(stage.data, not_before) + units[unit].gather_us;
    gathered = stage.data;
  };
  if (gathers) gather(units.size() - 1, stage.before);
  for (std::size_t unit = units.size(); unit-- > 0;) {
    const double arrived = gathered;
    if (gathers && unit > 0 && schedule.backward_prefetch == Prefetch::pre) gather(unit - 1, stage.before);
    if (gathers) {
      stage.times.weights_us += std::max(0.0, arrived - stage.compute);
      stage.compute = std::max(stage.compute, arrived);
    }
    stage.compute += units[unit].backward_us;
    stage.before_that = stage.before;
    stage.before = stage.compute;
    if (gathers && unit > 0 && schedule.backward_prefetch != Prefetch::pre) gather(unit - 1, stage.compute);
    if (reduces && units[unit].reduce_us > 0) {
      stage.data = std::max(stage.data, stage.compute) + units[unit].reduce_us;
    }
  }
}

const StepTimes& ScheduleEvaluator::evaluate(const StepSchedule& schedule) {
  const std::uint32_t stages = schedule.shape.stages, micro_batches = schedule.shape.micro_batches;
  const auto n_chunks = static_cast<std::uint32_t>(schedule.chunks.size());
  if (orders_.size() != stages || !(shape_ == schedule.shape)) {
    shape_ = schedule.shape;
    orders_.resize(stages);
    for (std::uint32_t s = 0; s < stages; ++s) pipeline_order(shape_, s, orders_[s]);
  }
  sums_.assign(n_chunks, {});
  for (std::uint32_t c = 0; c < n_chunks; ++c) {
    for (const ScheduleUnit& unit : schedule.chunks[c].units) {
      sums_[c].forward += unit.forward_us;
      sums_[c].backward += unit.backward_us;
      sums_[c].weight_gradient += unit.weight_gradient_us;
    }
  }
  stages_.assign(stages, {});
  const std::size_t cells = std::size_t{n_chunks} * micro_batches;
  forward_ready_.assign(cells, kNotYet);
  backward_ready_.assign(cells, kNotYet);
  for (std::uint32_t m = 0; m < micro_batches; ++m) forward_ready_[m] = 0;

  // Every stage goes on until it needs what a neighbour has not sent yet.
  std::size_t remaining = 0;
  for (const auto& order : orders_) remaining += order.size();
  while (remaining > 0) {
    const std::size_t before = remaining;
    for (std::uint32_t s = 0; s < stages; ++s) {
      Stage& stage = stages_[s];
      const std::vector<PipelinePass>& order = orders_[s];
      for (; stage.next < order.size(); ++stage.next, --remaining) {
        const PipelinePass& pass = order[stage.next];
        const std::uint32_t c = pass.chunk * stages + s;
        const std::size_t cell = std::size_t{c} * micro_batches + pass.micro_batch;
        const ScheduleChunk& chunk = schedule.chunks[c];
        if (pass.kind == PassKind::weight_gradient) {
          stage.compute += sums_[c].weight_gradient;
          stage.times.compute_us += sums_[c].weight_gradient;
          continue;
        }
        const bool is_forward = pass.kind == PassKind::forward;
        const double ready = is_forward ? forward_ready_[cell] : backward_ready_[cell];
        if (ready == kNotYet) break;
        stage.times.idle_us += std::max(0.0, ready - stage.compute);
        stage.compute = std::max(stage.compute, ready);
        if (is_forward) {
          forward(schedule, chunk, sums_[c], pass.micro_batch == 0, stage);
          stage.times.compute_us += sums_[c].forward;
        } else {
          backward(schedule, chunk, sums_[c], pass.micro_batch + 1 == micro_batches, stage);
          stage.times.compute_us += sums_[c].backward;
        }
        // Hand on to the neighbour.
        if (is_forward && c + 1 == n_chunks) {
          backward_ready_[cell] = stage.compute;
          continue;
        }
        if (!is_forward && c == 0) continue;
        const std::uint32_t to = is_forward ? c + 1 : c - 1;
        double arrival = stage.compute;
        if (stages > 1) {
          const bool wraps = is_forward ? s + 1 == stages : s == 0;
          const double time = wraps ? schedule.boundary_wrap_us : schedule.boundary_us;
          double& lane = is_forward ? stage.send_forward : stage.send_backward;
          lane = std::max(lane, stage.compute) + time;
          arrival = lane;
          if (schedule.boundary_blocks) {
            stage.times.boundary_us += arrival - stage.compute;
            stage.compute = arrival;
          }
        }
        const std::size_t target = std::size_t{to} * micro_batches + pass.micro_batch;
        (is_forward ? forward_ready_ : backward_ready_)[target] = arrival;
      }
    }
    if (remaining == before) break;  // an order that cannot run; check() keeps these out
  }

  // Gradients, the common norm, the update, the weights.
  result_.stages.resize(stages);
  double all_reduced = 0;
  for (std::uint32_t s = 0; s < stages; ++s) {
    Stage& stage = stages_[s];
    StageTimes& times = stage.times;
    times.passes_end_us = stage.compute;
    double reduced = std::max(stage.compute, stage.data);
    if (schedule.reduce == GradientReduce::at_end) reduced += schedule.reduce_at_end_us[s];
    stage.data = reduced;
  }
  if (schedule.embedding_reduce_us > 0 && stages > 1) {
    const double both = std::max(stages_.front().data, stages_.back().data) + schedule.embedding_reduce_us;
    stages_.front().data = stages_.back().data = both;
  }
  for (const Stage& stage : stages_) all_reduced = std::max(all_reduced, stage.data);
  double end = 0;
  for (std::uint32_t s = 0; s < stages; ++s) {
    Stage& stage = stages_[s];
    StageTimes& times = stage.times;
    times.reduce_us = stage.data - times.passes_end_us;
    const double start = schedule.optimizer_waits_for_all ? all_reduced : stage.data;
    times.idle_us += start - stage.data;
    times.optimizer_us = schedule.optimizer_us[s];
    times.gather_us = schedule.gather == WeightGather::after_step ? schedule.gather_after_step_us[s] : 0.0;
    times.end_us = start + times.optimizer_us + times.gather_us;
    end = std::max(end, times.end_us);
    result_.stages[s] = times;
  }
  result_.step_us = end + schedule.fixed_us;
  double busiest = -1;
  for (std::uint32_t s = 0; s < stages; ++s) {
    const StageTimes& times = result_.stages[s];
    const double busy = times.compute_us + times.weights_us + times.boundary_us;
    if (busy > busiest) {
      busiest = busy;
      result_.critical_stage = s;
    }
  }
  return result_;
}

}  // namespace stepcast

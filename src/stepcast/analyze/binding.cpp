#include "stepcast/analyze/binding.h"

#include <algorithm>

#include "stepcast/analyze/body_profiles.h"
#include "stepcast/base/names.h"

namespace stepcast {

Binding binding_of(const FlatProgram& flat, const TaskTimes& times, const Costs& costs, RankClassId c,
                   std::size_t task, double rank_start_us) {
  Binding best{.kind = Binding::Kind::rank_start, .source = {}, .arrival_us = rank_start_us};
  if (const std::size_t previous = flat.previous_on_lane(c, task); previous != kNoTask) {
    const double free_from = times.at(c, previous).end_us;
    // `>=` because a lane that has been free since the start of the rank still runs the task after its
    // predecessor, so the lane wins a tie.
    if (free_from >= best.arrival_us - kTimeToleranceUs) {
      best.kind = Binding::Kind::lane;
      best.source = FlatSource{.info = {}, .task = previous, .from_end = true, .delay_us = 0};
      best.arrival_us = free_from;
    }
  }
  flat.for_each_source(c, task, costs, [&](const FlatSource& source) {
    double arrival = rank_start_us;
    if (source.task != kNoTask) {
      const Interval& times_of = times.at(c, source.task);
      arrival = source.from_end ? times_of.end_us : times_of.start_us;
    }
    arrival += source.delay_us;
    if (arrival > best.arrival_us + kTimeToleranceUs)
      best = {.kind = Binding::Kind::edge, .source = source, .arrival_us = arrival};
  });
  return best;
}

std::string_view to_string(IdleCause cause) {
  return name_of<IdleCause::rest>(
      cause,
      {"cpu", "other_stream", "other_rank", "pipeline", "between_steps", "gpu", "other_thread", "rest"},
      "rest");
}

IdleCause idle_cause_before(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                            RankClassId c, std::size_t task, double rank_start_us) {
  const double start = times.at(c, task).start_us;
  // Follow waiting tasks back in time. Each round moves to an earlier task, so the loop ends.
  for (;;) {
    const Binding binding = binding_of(flat, times, costs, c, task, rank_start_us);
    const std::size_t before = binding.source.task;
    if (flat.bodies() != nullptr && before != kNoTask) {
      const BodyProfile* body = body_of(flat, flat.info(c, before));
      // A body that ends by waiting knows its cause from its own analysis.
      if (body != nullptr && body->ends_on && times.at(c, before).end_us >= start - kTimeToleranceUs)
        return *body->ends_on;
    }
    // A waiting task that began before the gap is a cause on its own: only those that lie inside it are
    // followed.
    const bool through = binding.kind != Binding::Kind::rank_start && before != kNoTask &&
                         flat.info(c, before).kind == TaskKind::wait &&
                         times.at(c, before).start_us >= start - kTimeToleranceUs;
    if (!through) return idle_cause(flat, c, task, binding);
    task = before;
  }
}

IdleCause idle_cause(const FlatProgram& flat, RankClassId c, std::size_t task, const Binding& binding) {
  // Constraints other than an edge to a task are gaps between queued kernels or the start of the rank.
  if (binding.kind != Binding::Kind::edge || binding.source.task == kNoTask) return IdleCause::rest;
  const EdgeOrigin origin = binding.source.info.origin;
  if (origin == EdgeOrigin::stream_order || origin == EdgeOrigin::recorded_offset) return IdleCause::rest;
  const std::uint16_t lane = flat.lane(c, task);
  const std::uint16_t source_lane = flat.lane(c, binding.source.task);
  if (lane == source_lane) return IdleCause::rest;
  const auto lanes = std::span<const Lane>{flat.program().rank_class(c).lanes};
  const bool source_on_cpu = lanes[source_lane].kind == LaneKind::cpu_thread;
  if (lanes[lane].kind == LaneKind::cpu_thread)
    return source_on_cpu ? IdleCause::other_thread : IdleCause::gpu;
  const TaskInfo& source = flat.info(c, binding.source.task);
  if (source_on_cpu) {
    // The source is host work: either between two steps or the launching CPU.
    const HostWork* work = flat.program().works.host(source.work);
    const bool between = work != nullptr && work->activity == HostWork::Activity::between_steps;
    return between ? IdleCause::between_steps : IdleCause::cpu;
  }
  // Point-to-point transfers connect pipeline stages.
  if (source.kind == TaskKind::collective) {
    const CollectiveId id = flat.collective_of(c, binding.source.task);
    if (id.valid() && flat.program().collectives()[id.index()].op == CollectiveOp::send_receive)
      return IdleCause::pipeline;
  }
  return IdleCause::other_stream;
}

std::optional<FlatSource> launch_of(const FlatProgram& flat, const TaskTimes& times, const Costs& costs,
                                    RankClassId c, std::size_t task) {
  std::optional<FlatSource> launch;
  flat.for_each_source(c, task, costs, [&](const FlatSource& source) {
    if (source.info.origin != EdgeOrigin::launch || source.task == kNoTask) return;
    if (!launch || times.at(c, source.task).end_us > times.at(c, launch->task).end_us) launch = source;
  });
  return launch;
}

Interval before_launch(const FlatProgram& flat, const TaskTimes& times, const Costs& costs, RankClassId c,
                       std::size_t task, Interval gap) {
  const std::optional<FlatSource> launch = launch_of(flat, times, costs, c, task);
  const double returned = launch ? times.at(c, launch->task).end_us : gap.start_us;
  return {gap.start_us, std::clamp(returned, gap.start_us, gap.end_us)};
}

}  // namespace stepcast

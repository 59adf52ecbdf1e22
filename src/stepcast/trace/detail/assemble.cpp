#include "stepcast/trace/detail/assemble.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "stepcast/trace/detail/collective_facts.h"
#include "stepcast/trace/detail/gpu_operations.h"
#include "stepcast/trace/detail/host_work.h"

namespace stepcast::detail {
namespace {

// A launch delay or stream gap this close to its constant may be taken as recorded
// (RebuildOptions::own_delays).
constexpr double kOwnDelayWithinUs = 3;

struct LaunchEdge {
  bool from_start = false;
  bool kept = false;
  double delay_us = 0;
  DelayClass delay;
};

LaunchEdge launch_edge(const RankGraph& g, std::size_t i, const Constants& constants,
                       const std::vector<std::vector<std::int32_t>>& into, bool own_delays) {
  const GpuWork& w = g.gpu[i];
  const Call& c = g.calls[static_cast<std::size_t>(w.call)];
  LaunchEdge edge;
  if (c.blocking_copy) {
    edge.from_start = true;
    edge.delay = launch_class(DelayKind::inside_launch, g, w);
    edge.delay_us = constants.value_us(edge.delay);
  } else if (starts_inside_call(g, w)) {
    // How far into its call the work begins depends on the call (staging of a large copy, a slow first
    // launch): its own delay is kept.
    edge.from_start = true;
    edge.kept = true;
    edge.delay = launch_class(DelayKind::inside_launch, g, w);
    edge.delay_us = std::max(0.0, w.start_us - c.start_us);
    if (!launched_clean(g, i, into)) edge.delay_us = std::min(edge.delay_us, constants.value_us(edge.delay));
  } else {
    edge.delay = launch_class(DelayKind::launch, g, w);
    edge.delay_us = constants.value_us(edge.delay);
    const double own = w.start_us - c.end_us;
    if (own_delays && launched_clean(g, i, into) && std::abs(own - edge.delay_us) <= kOwnDelayWithinUs) {
      edge.delay_us = own;
      edge.kept = true;
    }
  }
  return edge;
}

DelayClass handoff_class(Handoff::Kind kind) {
  switch (kind) {
    case Handoff::Kind::wake: return {.kind = DelayKind::handoff_wake};
    case Handoff::Kind::join: return {.kind = DelayKind::handoff_join};
    case Handoff::Kind::evaluate: break;
  }
  return {.kind = DelayKind::handoff_evaluate};
}

// Builds the block of one rank.
class RankAssembler {
 public:
  RankAssembler(Program& program, DelayTable& delays, const RankGraph& g, const CpuLanes& lanes,
                const Constants& constants, const CollectiveMatch& match, const GpuOperations& operations,
                const std::vector<GroupId>& groups, const RebuildOptions& options)
      : program_(program),
        delays_(delays),
        g_(g),
        lanes_(lanes),
        constants_(constants),
        match_(match),
        operations_(operations),
        groups_(groups),
        options_(options),
        builder_(fmt::format("rank {}", g.rank)) {}

  struct Built {
    BlockBuilder::Finished finished;
    std::vector<Interval> measured;  // [task of the block]
    RecordedStepFacts facts;
    std::vector<TaskId> gpu_task;  // [GpuWork] -> task of the block
    std::vector<Lane> lanes;
  };

  Result<Built> build() {
    window_begin_ = builder_.add_in_port("window begin");
    wait_of_call_.assign(g_.calls.size(), nullptr);
    for (const CpuWait& wait : lanes_.waits) wait_of_call_[static_cast<std::size_t>(wait.call)] = &wait;
    call_enter_.assign(g_.calls.size(), TaskId{});
    call_return_.assign(g_.calls.size(), TaskId{});
    add_cpu_tasks();
    add_gpu_tasks();
    add_handoffs();
    add_launches_and_order();
    add_gpu_waits();
    add_returns();
    Built built;
    built.lanes.assign(builder_.lanes().begin(), builder_.lanes().end());
    STEPCAST_ASSIGN(built.finished, std::move(builder_).finish_with_map());
    built.measured.resize(measured_.size());
    for (std::size_t i = 0; i < measured_.size(); ++i)
      built.measured[built.finished.new_id[i].index()] = measured_[i];
    for (const TaskId t : gpu_task_) built.gpu_task.push_back(built.finished.new_id[t.index()]);
    finish_facts(built);
    return built;
  }

 private:
  TaskId add_task(LaneId lane, TaskInfo info, double duration_us, Interval measured) {
    const TaskId task = builder_.add_task(lane, info, Microseconds{std::max(0.0, duration_us)});
    measured_.push_back(measured);
    return task;
  }

  void add_edge(Moment from, TaskId to, double delay_us, EdgeInfo info) {
    builder_.add_edge(from, to, Microseconds{std::max(0.0, delay_us)}, info);
    const auto origin = static_cast<std::size_t>(info.origin);
    ++facts_.edge_count[origin];
    if (info.inferred) ++facts_.inferred_edge_count[origin];
    if (info.kept) facts_.kept_delay_us[origin] += std::max(0.0, delay_us);
  }

  StackId stack_of_op(std::int32_t op) {
    if (op == kNone) return StackId{};
    const auto it = stack_of_op_.find(op);
    if (it != stack_of_op_.end()) return it->second;
    const StackId parent = stack_of_op(g_.parent_of_op[static_cast<std::size_t>(op)]);
    const StackId stack =
        program_.stacks.push(parent, intern(g_.recorded->cpu_ops[static_cast<std::size_t>(op)].name));
    stack_of_op_.emplace(op, stack);
    return stack;
  }

  NameId intern(NameId recorded_name) {
    const auto [it, fresh] = name_.try_emplace(recorded_name.index(), NameId{});
    if (fresh) it->second = program_.names.intern(g_.recorded->names.text(recorded_name));
    return it->second;
  }

  void add_cpu_tasks() {
    const NameId no_op = program_.names.intern("(no framework op)");
    cpu_task_.resize(lanes_.tasks.size());
    const std::vector<std::vector<HostTime>> times = host_times(g_, lanes_);
    for (std::size_t lane = 0; lane < lanes_.tasks.size(); ++lane) {
      const std::int32_t thread = lanes_.threads[lane];
      const RecordedThread& recorded = g_.recorded->threads[static_cast<std::size_t>(thread)];
      const bool main = thread == g_.window.main_thread;
      const LaneId lane_id =
          builder_.add_lane({LaneKind::cpu_thread,
                             fmt::format("{} {}", main ? "main thread" : "thread", recorded.tid), thread});
      for (std::size_t i = 0; i < lanes_.tasks[lane].size(); ++i) {
        const CpuTask& t = lanes_.tasks[lane][i];
        TaskInfo info;
        info.kind = t.kind;
        info.stack = stack_of_op(t.op);
        const double length = t.end_us - t.start_us;
        if (t.call == kNone) {
          info.name =
              t.op == kNone ? no_op : intern(g_.recorded->cpu_ops[static_cast<std::size_t>(t.op)].name);
          const std::int32_t top = times[lane][i].op;
          info.work = program_.works.intern(HostWork{
              .type = times[lane][i].type,
              .op = top == kNone ? NameId{}
                                 : intern(g_.recorded->cpu_ops[static_cast<std::size_t>(top)].name)});
          cpu_task_[lane].push_back(add_task(lane_id, info, length, {t.start_us, t.end_us}));
          continue;
        }
        const auto call = static_cast<std::size_t>(t.call);
        info.recorded_event = g_.calls[call].recorded;
        info.name = intern(g_.recorded->runtime_calls[g_.calls[call].recorded].name);
        info.work = program_.works.intern(HostWork{.type = times[lane][i].type, .op = info.name});
        if (const CpuWait* wait = wait_of_call_[call]; wait != nullptr) {
          const double base = std::min(length, constants_.value_us(base_class(wait->kind)));
          info.kind = TaskKind::sync_enter;
          call_enter_[call] = add_task(lane_id, info, base, {t.start_us, t.start_us + base});
          info.kind = TaskKind::sync_return;
          info.work = program_.works.intern(Waiting{});
          call_return_[call] = add_task(lane_id, info, 0, {t.end_us, t.end_us});
          account_wait(*wait, t, base);
        } else {
          call_enter_[call] = call_return_[call] = add_task(lane_id, info, length, {t.start_us, t.end_us});
        }
        cpu_task_[lane].push_back(call_return_[call]);
      }
      if (main && !cpu_task_[lane].empty()) step_end_ = cpu_task_[lane].back();
    }
  }

  // How much of a call's recorded waiting the rebuilt edges explain, by recorded times.
  void account_wait(const CpuWait& wait, const CpuTask& t, double base) {
    const double waited = t.end_us - t.start_us - base;
    double explained_until = t.start_us + base;
    for (const std::int32_t s : wait.sources) {
      explained_until = std::max(explained_until, g_.gpu[static_cast<std::size_t>(s)].end_us +
                                                      constants_.value_us(return_class(wait.kind)));
    }
    facts_.recorded_wait_us += waited;
    facts_.unexplained_wait_us += std::clamp(t.end_us - explained_until, 0.0, waited);
  }

  void add_gpu_tasks() {
    std::vector<LaneId> lane_of_stream;
    for (const Stream& s : g_.streams) {
      const bool one_device = std::all_of(g_.streams.begin(), g_.streams.end(), [&](const Stream& o) {
        return o.device == g_.streams.front().device;
      });
      lane_of_stream.push_back(
          builder_.add_lane({LaneKind::gpu_stream,
                             one_device ? fmt::format("stream {}", s.number)
                                        : fmt::format("GPU {} stream {}", s.device, s.number),
                             s.number}));
    }
    gpu_task_.resize(g_.gpu.size());
    for (std::size_t s = 0; s < g_.streams.size(); ++s) {
      for (const std::int32_t i : g_.streams[s].work) {
        const GpuWork& w = g_.gpu[static_cast<std::size_t>(i)];
        TaskInfo info;
        info.kernel_class = w.kernel_class;
        info.kind = w.kind == GpuOp::Kind::memcpy   ? TaskKind::memcpy
                    : w.kind == GpuOp::Kind::memset ? TaskKind::memset
                                                    : TaskKind::kernel;
        info.name = intern(g_.recorded->gpu_ops[w.recorded].name);
        info.recorded_event = w.recorded;
        if (w.call != kNone) info.stack = stack_of_op(g_.calls[static_cast<std::size_t>(w.call)].op);
        set_work(static_cast<std::size_t>(i), info);
        double length = w.length_us();
        if (w.collective != kNone) {
          info.kind = TaskKind::collective;
          length = match_.collectives[static_cast<std::size_t>(w.collective)].transfer_us;
        }
        if (w.call == kNone) {  // its part inside the window
          length = w.end_us - std::max(w.start_us, g_.window.start_us);
          ++facts_.left_over_kernels;
        } else {
          last_gpu_end_us_ = std::max(last_gpu_end_us_, w.end_us);
        }
        gpu_task_[static_cast<std::size_t>(i)] =
            add_task(lane_of_stream[s], info, length, {w.start_us, w.end_us});
      }
    }
  }

  void set_work(std::size_t i, TaskInfo& info) {
    const GpuWork& w = g_.gpu[i];
    if (w.communication) {
      const CollectiveFacts facts = collective_facts(g_, w);
      if (!is_known(facts)) return;
      info.work = program_.works.intern(CollectiveWork{
          .op = facts.op, .dtype = facts.dtype, .message = message_of(facts), .group = groups_[i]});
      return;
    }
    const GpuOperations::Share& share = operations_.of_work[i];
    if (share.operation == kNone) return;
    info.work = program_.works.intern(operations_.operations[static_cast<std::size_t>(share.operation)]);
    info.work_times = share.times;
  }

  void add_handoffs() {
    for (const Handoff& h : lanes_.handoffs) {
      const TaskId to = task_begin(h.to_thread, h.to_task);
      if (h.from_task == kNone) {
        add_edge(BlockBuilder::arrival_at(window_begin_), to, h.delay_us,
                 {EdgeOrigin::recorded_offset, false, true, 0});
        continue;
      }
      const TaskId from =
          cpu_task_[static_cast<std::size_t>(h.from_thread)][static_cast<std::size_t>(h.from_task)];
      add_edge(Moment::end_of(from), to, h.delay_us,
               {EdgeOrigin::thread_handoff, true, true, 0, delays_.intern(handoff_class(h.kind))});
    }
  }

  // First task of what may be two (enter and return).
  TaskId task_begin(std::int32_t lane, std::int32_t task) const {
    const CpuTask& t = lanes_.tasks[static_cast<std::size_t>(lane)][static_cast<std::size_t>(task)];
    return t.call != kNone ? call_enter_[static_cast<std::size_t>(t.call)]
                           : cpu_task_[static_cast<std::size_t>(lane)][static_cast<std::size_t>(task)];
  }

  void add_launches_and_order() {
    const auto into = edges_into(g_);
    for (std::size_t i = 0; i < g_.gpu.size(); ++i) {
      const GpuWork& w = g_.gpu[i];
      if (w.call == kNone) {
        // Left over from before the window: the first on its stream at its recorded offset, the others a
        // recorded gap behind it, so that a scenario which changes kernel times moves them as a queue.
        const bool queued = w.previous != kNone && g_.gpu[static_cast<std::size_t>(w.previous)].call == kNone;
        if (queued) {
          add_edge(Moment::end_of(gpu_task_[static_cast<std::size_t>(w.previous)]), gpu_task_[i],
                   w.start_us - g_.gpu[static_cast<std::size_t>(w.previous)].end_us,
                   {EdgeOrigin::recorded_offset, false, true, 0});
        } else {
          add_edge(BlockBuilder::arrival_at(window_begin_), gpu_task_[i], w.start_us - g_.window.start_us,
                   {EdgeOrigin::recorded_offset, false, true, 0});
        }
        continue;
      }
      const LaunchEdge edge = launch_edge(g_, i, constants_, into, options_.own_delays);
      const TaskId call = edge.from_start ? call_enter_[static_cast<std::size_t>(w.call)]
                                          : call_return_[static_cast<std::size_t>(w.call)];
      add_edge(edge.from_start ? Moment::start_of(call) : Moment::end_of(call), gpu_task_[i], edge.delay_us,
               {EdgeOrigin::launch, false, edge.kept, 0, delays_.intern(edge.delay)});
      if (w.previous != kNone) {
        const GpuWork& previous = g_.gpu[static_cast<std::size_t>(w.previous)];
        const DelayClass delay = gap_class(previous, w);
        double gap = constants_.value_us(delay);
        const double own = w.start_us - previous.end_us;
        if (options_.own_delays && own >= 0 && own <= gap + kOwnDelayWithinUs) gap = std::min(gap, own);
        if (gap > 0)
          add_edge(Moment::end_of(gpu_task_[static_cast<std::size_t>(w.previous)]), gpu_task_[i], gap,
                   {EdgeOrigin::stream_order, false, false, 0, delays_.intern(delay)});
      }
    }
  }

  void add_gpu_waits() {
    for (const GpuEdge& e : g_.gpu_edges) {
      const TaskId from = gpu_task_[static_cast<std::size_t>(e.from)];
      const TaskId to = gpu_task_[static_cast<std::size_t>(e.to)];
      EdgeInfo info = e.info;
      double delay_us = e.delay_us;
      if (info.origin != EdgeOrigin::device_busy) {
        const DelayClass delay =
            event_class(g_.gpu[static_cast<std::size_t>(e.from)], g_.gpu[static_cast<std::size_t>(e.to)]);
        delay_us = constants_.value_us(delay);
        info.delay = delays_.intern(delay);
      }
      add_edge(e.from_start ? Moment::start_of(from) : Moment::end_of(from), to, delay_us, info);
    }
  }

  void add_returns() {
    for (const CpuWait& wait : lanes_.waits) {
      const DelayClass delay = return_class(wait.kind);
      for (const std::int32_t s : wait.sources) {
        add_edge(Moment::end_of(gpu_task_[static_cast<std::size_t>(s)]),
                 call_return_[static_cast<std::size_t>(wait.call)], constants_.value_us(delay),
                 {EdgeOrigin::synchronization, wait.inferred, false, 0, delays_.intern(delay)});
      }
    }
  }

  void finish_facts(Built& built) {
    facts_.rank = g_.rank;
    facts_.step_number = g_.window.number;
    facts_.step_us = {g_.window.start_us, g_.window.end_us};
    facts_.gpu_window_end_us = last_gpu_end_us_;
    if (step_end_.index() < built.finished.new_id.size())
      facts_.step_end_task = built.finished.new_id[step_end_.index()];
    built.facts = facts_;
  }

  Program& program_;
  DelayTable& delays_;
  const RankGraph& g_;
  const CpuLanes& lanes_;
  const Constants& constants_;
  const CollectiveMatch& match_;
  const GpuOperations& operations_;
  const std::vector<GroupId>& groups_;  // [GpuWork], of communication
  const RebuildOptions& options_;
  BlockBuilder builder_;
  InPortId window_begin_;
  std::vector<Interval> measured_;
  std::vector<const CpuWait*> wait_of_call_;
  std::vector<TaskId> call_enter_, call_return_;  // [call]
  std::vector<std::vector<TaskId>> cpu_task_;     // [lane][task] -> last task of it
  std::vector<TaskId> gpu_task_;
  std::unordered_map<std::int32_t, StackId> stack_of_op_;
  std::unordered_map<std::uint32_t, NameId> name_;
  TaskId step_end_;
  double last_gpu_end_us_ = 0;
  RecordedStepFacts facts_;
};

}  // namespace

std::vector<double> ready_times(const RankGraph& g, const Constants& constants) {
  const auto into = edges_into(g);
  std::vector<double> ready(g.gpu.size(), 0);
  for (std::size_t i = 0; i < g.gpu.size(); ++i) {
    const GpuWork& w = g.gpu[i];
    if (w.call == kNone) {
      ready[i] = w.start_us;
      continue;
    }
    const Call& c = g.calls[static_cast<std::size_t>(w.call)];
    const LaunchEdge edge = launch_edge(g, i, constants, into, false);
    ready[i] = (edge.from_start ? c.start_us : c.end_us) + edge.delay_us;
    if (w.previous != kNone) {
      const GpuWork& previous = g.gpu[static_cast<std::size_t>(w.previous)];
      ready[i] = std::max(ready[i], previous.end_us + constants.value_us(gap_class(previous, w)));
    }
    for (const std::int32_t e : into[i]) {
      const GpuWork& from = g.gpu[static_cast<std::size_t>(g.gpu_edges[static_cast<std::size_t>(e)].from)];
      ready[i] = std::max(ready[i], from.end_us + constants.value_us(event_class(from, w)));
    }
  }
  return ready;
}

Status assemble(const std::vector<RankGraph>& ranks, const std::vector<CpuLanes>& lanes,
                const Constants& constants, const CollectiveMatch& match, const RebuildOptions& options,
                RecordedProgram& out) {
  out.constants = constants.table();
  const std::vector<std::vector<GroupId>> groups = add_groups(out.program, ranks, match);
  std::vector<std::vector<TaskId>> gpu_task(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const GpuOperations operations = operations_of_gpu_work(ranks[r], {.tf32_allowed = options.tf32_allowed});
    out.coverage.push_back(kernel_time(ranks[r], operations));
    RankAssembler assembler{out.program, out.delays, ranks[r],  lanes[r], constants,
                            match,       operations, groups[r], options};
    auto built = assembler.build();
    if (!built.ok()) return std::move(built).error().in_file(ranks[r].recorded->file);
    gpu_task[r] = std::move(built->gpu_task);
    out.measured.push_back(std::move(built->measured));
    out.facts.push_back(built->facts);
    out.start_offset_us.push_back(ranks[r].window.start_us);
    const BlockId block = out.program.add_block(std::move(built->finished.block));
    RankClass rank_class;
    rank_class.name = fmt::format("rank {}", ranks[r].rank);
    rank_class.lanes = std::move(built->lanes);
    rank_class.slot_count = 1;
    rank_class.recorded_rank = ranks[r].rank;
    const RankClassId id = out.program.add_rank_class(std::move(rank_class));
    BlockInstance instance;
    instance.block = block;
    instance.in_slots = {0};  // holds the rank's start until written: the window's begin
    out.program.add_instance(id, std::move(instance));
  }
  for (const MatchedCollective& c : match.collectives) {
    Collective collective;
    collective.op = c.op;
    collective.name = out.program.names.intern(c.name);
    collective.message_bytes = c.message_bytes;
    for (const auto& [rank, work] : c.members) {
      collective.members.push_back(
          {RankClassId{std::size_t(rank)}, InstanceId{0},
           gpu_task[static_cast<std::size_t>(rank)][static_cast<std::size_t>(work)]});
    }
    out.program.add_collective(std::move(collective));
  }
  return Ok{};
}

}  // namespace stepcast::detail

// Turns the linked graph of each rank into a block of tasks and edges, and joins the ranks into a Program.
// CPU tasks get their recorded duration, except calls that wait: they are split into an enter part (base
// cost) and a return part that an edge from the awaited GPU work delays. GPU tasks get their recorded
// duration, collectives the shortest duration over the ranks. Edges get learned constants as delays, or
// recorded delays that are marked as kept.
#include "stepcast/rebuild/detail/assemble.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "stepcast/operation/overhead_name.h"
#include "stepcast/rebuild/detail/collective_matching.h"
#include "stepcast/rebuild/detail/gpu_operations.h"
#include "stepcast/rebuild/detail/host_work.h"

namespace stepcast::detail {
namespace {

DelayClass handoff_class(Handoff::Kind kind) {
  switch (kind) {
    case Handoff::Kind::wake: return {.kind = DelayKind::handoff_wake};
    case Handoff::Kind::join: return {.kind = DelayKind::handoff_join};
    case Handoff::Kind::evaluate: break;
  }
  return {.kind = DelayKind::handoff_evaluate};
}

// Builds the block of one rank. The order in build() matters: edges refer to tasks that were added before.
class RankAssembler {
 public:
  RankAssembler(Program& program, DelayTable& delays, const RankGraph& g, const CpuLanes& lanes,
                const Constants& constants, const CollectiveMatch& match, const GpuOperations& operations,
                const std::vector<GroupId>& groups, const RankStarts& starts,
                std::vector<std::int64_t>& sequence_of_stack)
      : program_(program),
        delays_(delays),
        g_(g),
        lanes_(lanes),
        constants_(constants),
        match_(match),
        operations_(operations),
        groups_(groups),
        starts_(starts),
        sequence_of_stack_(sequence_of_stack),
        builder_(fmt::format("rank {}", g.rank)) {}

  // Everything that is known about a rank after its block is built.
  struct Built {
    BlockBuilder::Finished finished;
    std::vector<Interval> measured;  // [task of the block] recorded start and end
    RecordedStepFacts facts;
    RecordedHost host;
    // [GpuWork] -> task of the block.
    std::vector<TaskId> gpu_task;  // [GpuWork] -> task of the block
    std::vector<Lane> lanes;
  };

  // Adds tasks first, then edges, and renumbers everything when the block is finished.
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
    add_kept_returns();
    Built built;
    built.lanes.assign(builder_.lanes().begin(), builder_.lanes().end());
    STEPCAST_ASSIGN(built.finished, std::move(builder_).finish_with_map());
    // The finished block has its own task numbers, so all task lists are renumbered.
    built.measured.resize(measured_.size());
    for (std::size_t i = 0; i < measured_.size(); ++i)
      built.measured[built.finished.new_id[i].index()] = measured_[i];
    for (const TaskId t : gpu_task_) built.gpu_task.push_back(built.finished.new_id[t.index()]);
    finish_facts(built);
    built.host = std::move(host_);
    return built;
  }

 private:
  // Adds a task and its recorded interval. Durations below 0 count as 0.
  TaskId add_task(LaneId lane, TaskInfo info, double duration_us, Interval measured) {
    const TaskId task = builder_.add_task(lane, info, Microseconds{std::max(0.0, duration_us)});
    measured_.push_back(measured);
    return task;
  }

  // Adds an edge and counts it by its origin. A negative delay counts as 0.
  void add_edge(Moment from, TaskId to, double delay_us, EdgeInfo info) {
    builder_.add_edge(from, to, Microseconds{std::max(0.0, delay_us)}, info);
    const auto origin = static_cast<std::size_t>(info.origin);
    ++facts_.edge_count[origin];
    if (info.inferred) ++facts_.inferred_edge_count[origin];
    if (info.kept) facts_.kept_delay_us[origin] += std::max(0.0, delay_us);
  }

  // The stack of operators that are open around `op`, as names of the Program. Cached per operator, so the
  // total cost is linear in the number of operators.
  StackId stack_of_op(std::int32_t op) {
    std::vector<std::int32_t> inward;  // from `op` to the outermost operator that is not cached
    StackId stack;
    for (; op != kNone; op = g_.parent_of_op[static_cast<std::size_t>(op)]) {
      if (const auto known = stack_of_op_.find(op); known != stack_of_op_.end()) {
        stack = known->second;
        break;
      }
      inward.push_back(op);
    }
    for (; !inward.empty(); inward.pop_back()) {
      const CpuOp& inner = g_.recorded->cpu_ops[static_cast<std::size_t>(inward.back())];
      stack = program_.stacks.push(stack, intern(inner.name));
      stack_of_op_.emplace(inward.back(), stack);
      sequence_of_stack_.resize(program_.stacks.size(), -1);
      sequence_of_stack_[stack.index()] = inner.sequence_number;
    }
    return stack;
  }

  // The stack of the operator that launched the work. For a node of a CUDA graph, the name of the node is
  // added.
  StackId stack_of_work(const GpuWork& w) {
    const StackId stack = stack_of_op(w.op);
    const NameId node = g_.recorded->gpu_ops[w.recorded].graph_node;
    if (!node.valid()) return stack;
    sequence_of_stack_.resize(program_.stacks.size() + 1, -1);
    return program_.stacks.push(stack, intern(node));
  }

  // The name in the Program for a name in the trace.
  NameId intern(NameId recorded_name) {
    const auto [it, fresh] = name_.try_emplace(recorded_name.index(), NameId{});
    if (fresh) it->second = program_.names.intern(g_.recorded->names.text(recorded_name));
    return it->second;
  }

  // Name of an operator in the Program; `op` is an index into RecordedRank::cpu_ops. Invalid for kNone.
  NameId name_of_op(std::int32_t op) {
    return op == kNone ? NameId{} : intern(g_.recorded->cpu_ops[static_cast<std::size_t>(op)].name);
  }

  // The name under which the overheads of an operator or call are known: with its type, whether it runs in a
  // data loader, and for T1 the operator before the gap.
  NameId host_name(OverheadType type, NameId name, bool in_data_loader, std::int32_t after) {
    if (!name.valid() || (!in_data_loader && type != OverheadType::t1)) return name;
    const std::string_view before =
        after == kNone ? std::string_view{} : program_.names.text(name_of_op(after));
    return program_.names.intern(overhead_name_of(type, program_.names.text(name), in_data_loader, before));
  }

  // Converts the host times of the rank to names of the Program.
  void add_host(const HostTimes& times) {
    for (const CutPiece& piece : times.pieces)
      host_.pieces.push_back({piece.type,
                              host_name(piece.type, name_of_op(piece.op), piece.in_data_loader, piece.after),
                              piece.duration_us, piece.profiler_events});
    for (const LaunchingOperator& op : times.operators) {
      host_.operators.push_back({name_of_op(op.op), static_cast<std::uint32_t>(host_.launches.size()),
                                 static_cast<std::uint32_t>(op.launches.size())});
      for (const std::int32_t call : op.launches) {
        host_.launches.push_back(
            intern(g_.recorded->runtime_calls[g_.calls[static_cast<std::size_t>(call)].recorded].name));
      }
    }
  }

  // Adds a lane per CPU thread with its tasks, and splits waiting calls into an enter and a return part.
  void add_cpu_tasks() {
    const NameId no_op = program_.names.intern("(no framework op)");
    cpu_task_.resize(lanes_.tasks.size());
    const HostTimes times = host_times(g_, lanes_);
    add_host(times);
    double last_cpu_end_us = 0;
    for (std::size_t lane = 0; lane < lanes_.tasks.size(); ++lane) {
      const std::int32_t thread = lanes_.threads[lane];
      const RecordedThread& recorded = g_.recorded->threads[static_cast<std::size_t>(thread)];
      const bool main = thread == g_.window.main_thread;
      const LaneId lane_id =
          builder_.add_lane({LaneKind::cpu_thread,
                             fmt::format("{} {}", main ? "main thread" : "thread", recorded.tid), thread});
      for (std::size_t i = 0; i < lanes_.tasks[lane].size(); ++i) {
        const CpuTask& t = lanes_.tasks[lane][i];
        TaskInfo info{.kind = t.kind, .stack = stack_of_op(t.op)};
        const double length = t.end_us - t.start_us;
        if (t.call == kNone) {
          info.name =
              t.op == kNone ? no_op : intern(g_.recorded->cpu_ops[static_cast<std::size_t>(t.op)].name);
          const HostTime& time = times.of_task[lane][i];
          info.work = program_.works.intern(
              HostWork{.type = time.type,
                       .op = host_name(time.type, name_of_op(time.op), time.in_data_loader, time.after)});
          info.work_times = time.times;
          cpu_task_[lane].push_back(add_task(lane_id, info, length, {t.start_us, t.end_us}));
          continue;
        }
        const auto call = static_cast<std::size_t>(t.call);
        info.recorded_event = g_.calls[call].recorded;
        info.name = intern(g_.recorded->runtime_calls[g_.calls[call].recorded].name);
        const NameId as_host =
            host_name(OverheadType::t4, info.name, times.of_task[lane][i].in_data_loader, kNone);
        info.work = program_.works.intern(HostWork{.type = OverheadType::t4, .op = as_host});
        if (const CpuWait* wait = wait_of_call_[call]; wait != nullptr) {
          const double own = wait->own_us;  // time of the call after its wait
          const double base = std::min(length - own, base_us(*wait));
          host_.pieces.push_back({OverheadType::t4, as_host, base + own, 1});
          // Both parts of a waiting call together are one occurrence of the overhead; each counts with its
          // share.
          const double after = base + own > 0 ? own / (base + own) : 0;
          info.kind = TaskKind::sync_enter;
          info.work_times = 1 - after;
          call_enter_[call] = add_task(lane_id, info, base, {t.start_us, t.start_us + base});
          info.kind = TaskKind::sync_return;
          info.work_times = own > 0 ? after : 1;
          if (own == 0) info.work = program_.works.intern(Waiting{});
          call_return_[call] = add_task(lane_id, info, own, {t.end_us - own, t.end_us});
          account_wait(*wait, t, base);
        } else {
          host_.pieces.push_back({OverheadType::t4, as_host, length, 1});
          call_enter_[call] = call_return_[call] = add_task(lane_id, info, length, {t.start_us, t.end_us});
        }
        cpu_task_[lane].push_back(call_return_[call]);
      }
      if (cpu_task_[lane].empty()) continue;
      // A marked step ends with its main thread. A whole file ends with the thread that is last.
      const double end_us = lanes_.tasks[lane].back().end_us;
      const bool whole_file = g_.window.number < 0;
      if (whole_file ? !step_end_.valid() || end_us > last_cpu_end_us : main) {
        step_end_ = cpu_task_[lane].back();
        last_cpu_end_us = end_us;
      }
    }
  }

  // Cost of a waiting call if there is nothing to wait for: recorded for held calls, else the learned
  // constant.
  [[nodiscard]] double base_us(const CpuWait& wait) const {
    return wait.kind == WaitKind::held ? wait.enter_us : constants_.value_us(base_class(wait.kind));
  }
  // Delay from the end of the awaited work to the return of the call, by the same rule.
  [[nodiscard]] double return_us(const CpuWait& wait) const {
    return wait.kind == WaitKind::held ? wait.return_us : constants_.value_us(return_class(wait.kind));
  }

  // Measures how much of a call's recorded waiting time the edges explain, by recorded times. At the
  // beginning of a file, a call can wait for work that was launched before the recording; its recorded return
  // is then kept.
  void account_wait(const CpuWait& wait, const CpuTask& t, double base) {
    const double waited = t.end_us - t.start_us - base - wait.own_us;
    double explained_until = t.start_us + base;
    for (const std::int32_t s : wait.sources) {
      explained_until = std::max(explained_until,
                                 g_.gpu[static_cast<std::size_t>(s)].end_us + return_us(wait) + wait.own_us);
    }
    facts_.recorded_wait_us += waited;
    const double unexplained = std::clamp(t.end_us - explained_until, 0.0, waited);
    if (wait.sources.empty() && g_.begins_with_file && unexplained > kLateUs && nothing_launched_before(t)) {
      kept_returns_.push_back({wait.call, t.end_us - g_.window.start_us});
      ++facts_.kept_starts;
      return;
    }
    facts_.unexplained_wait_us += unexplained;
  }

  // True if no launch of the file precedes the task, so that a waiting call waits for work from before the
  // file.
  [[nodiscard]] bool nothing_launched_before(const CpuTask& t) const {
    return std::ranges::none_of(
        g_.calls, [&](const Call& c) { return c.kind == CallKind::launch && c.start_us < t.start_us; });
  }

  // Adds a lane per GPU stream. A stream with overlapping work gets additional lanes, since the tasks of a
  // lane run one after another.
  void add_gpu_tasks() {
    const bool one_device = std::ranges::all_of(
        g_.streams, [&](const Stream& o) { return o.device == g_.streams.front().device; });
    gpu_task_.resize(g_.gpu.size());
    lane_of_work_.resize(g_.gpu.size());
    // Work of one stream that overlaps is put on separate lanes.
    struct StreamLane {
      LaneId id;
      double free_us;
    };
    for (const Stream& stream : g_.streams) {
      std::vector<StreamLane> lanes;
      for (const std::int32_t i : stream.work) {
        const GpuWork& w = g_.gpu[static_cast<std::size_t>(i)];
        TaskInfo info{.kernel_class = w.kernel_class};
        info.kind = w.kind == GpuOp::Kind::memcpy   ? TaskKind::memcpy
                    : w.kind == GpuOp::Kind::memset ? TaskKind::memset
                                                    : TaskKind::kernel;
        info.name = intern(g_.recorded->gpu_ops[w.recorded].name);
        info.recorded_event = w.recorded;
        info.stack = stack_of_work(w);
        set_work(static_cast<std::size_t>(i), info);
        double length = w.length_us();
        if (w.collective != kNone) {
          info.kind = TaskKind::collective;
          length = match_.collectives[static_cast<std::size_t>(w.collective)].transfer_us;
        }
        if (w.left_over) {  // only the part inside the window counts
          length = w.end_us - std::max(w.start_us, g_.window.start_us);
          ++facts_.left_over_kernels;
        } else {
          last_gpu_end_us_ = std::max(last_gpu_end_us_, w.end_us);
        }
        facts_.gpu_work_us += length;
        if (w.launch_is_lost()) facts_.unlaunched_us += length;
        auto lane = std::ranges::find_if(
            lanes, [&](const StreamLane& free) { return free.free_us <= w.start_us + g_.clock_step_us; });
        if (lane == lanes.end()) {
          std::string name = one_device ? fmt::format("stream {}", stream.number)
                                        : fmt::format("GPU {} stream {}", stream.device, stream.number);
          if (!lanes.empty()) name += fmt::format(", overlap {}", lanes.size());
          lanes.push_back(
              {builder_.add_lane({LaneKind::gpu_stream, std::move(name), stream.number}), w.end_us});
          lane = std::prev(lanes.end());
        }
        lane->free_us = std::max(lane->free_us, w.end_us);
        lane_of_work_[static_cast<std::size_t>(i)] = lane->id;
        gpu_task_[static_cast<std::size_t>(i)] = add_task(lane->id, info, length, {w.start_us, w.end_us});
      }
    }
  }

  // Sets the work of a task: the message of a collective, or the operation of its operator.
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

  // Adds the edges by which CPU threads wake or await each other, with their recorded delays.
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

  // The first task of a recorded task, which may have been split into enter and return.
  TaskId task_begin(std::int32_t lane, std::int32_t task) const {
    const CpuTask& t = lanes_.tasks[static_cast<std::size_t>(lane)][static_cast<std::size_t>(task)];
    return t.call != kNone ? call_enter_[static_cast<std::size_t>(t.call)]
                           : cpu_task_[static_cast<std::size_t>(lane)][static_cast<std::size_t>(task)];
  }

  // Adds launch edges, stream order, and recorded offsets from the start of the window.
  void add_launches_and_order() {
    const auto from_window = [&](std::size_t i, double offset_us) {
      EdgeInfo info{EdgeOrigin::recorded_offset, false, true, 0};
      if (g_.gpu[i].launch_is_lost())
        info = {EdgeOrigin::launch, true, true, 0, delays_.intern(lost_launch_class())};
      add_edge(BlockBuilder::arrival_at(window_begin_), gpu_task_[i], offset_us, info);
    };
    for (std::size_t i = 0; i < g_.gpu.size(); ++i) {
      const GpuWork& w = g_.gpu[i];
      const GpuStart& start = starts_.of_work[i];
      if (start.launch) {
        const LaunchEdge& edge = *start.launch;
        const TaskId call = edge.from_start ? call_enter_[static_cast<std::size_t>(w.call)]
                                            : call_return_[static_cast<std::size_t>(w.call)];
        add_edge(edge.from_start ? Moment::start_of(call) : Moment::end_of(call), gpu_task_[i], edge.delay_us,
                 {EdgeOrigin::launch, false, edge.kept, 0, delays_.intern(edge.delay)});
        if (start.offset_us) ++facts_.kept_starts;
      }
      if (start.offset_us) from_window(i, *start.offset_us);
      if (start.order) {
        const OrderEdge& edge = *start.order;
        const auto from = static_cast<std::size_t>(edge.from);
        EdgeInfo info = edge.info;
        if (edge.delay) info.delay = delays_.intern(*edge.delay);
        // Tasks of one lane are in order without an edge.
        const bool lane_says_it =
            edge.delay_us <= 0 && !edge.from_start && lane_of_work_[from] == lane_of_work_[i];
        if (!lane_says_it)
          add_edge(edge.from_start ? Moment::start_of(gpu_task_[from]) : Moment::end_of(gpu_task_[from]),
                   gpu_task_[i], edge.delay_us, info);
        if (edge.from_start) ++facts_.overlapping_kernels;
      }
      if (is_later_node(g_, i)) ++facts_.graph_nodes;
    }
  }

  // Adds edges between streams. A busy device keeps its recorded delay, other waits use the learned event
  // delay.
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

  // Adds edges from GPU work to the return of the calls that wait for it.
  void add_returns() {
    for (const CpuWait& wait : lanes_.waits) {
      EdgeInfo info{EdgeOrigin::synchronization, wait.inferred, wait.kind == WaitKind::held, 0};
      if (wait.kind != WaitKind::held) info.delay = delays_.intern(return_class(wait.kind));
      for (const std::int32_t s : wait.sources) {
        add_edge(Moment::end_of(gpu_task_[static_cast<std::size_t>(s)]),
                 call_return_[static_cast<std::size_t>(wait.call)], return_us(wait), info);
      }
    }
  }

  // Keeps the recorded return of calls that waited for work from before the file.
  void add_kept_returns() {
    for (const KeptReturn& kept : kept_returns_)
      add_edge(BlockBuilder::arrival_at(window_begin_), call_return_[static_cast<std::size_t>(kept.call)],
               kept.offset_us, {EdgeOrigin::recorded_offset, true, true, 0});
  }

  // Completes the facts of the rank, which reports print.
  void finish_facts(Built& built) {
    facts_.rank = g_.rank;
    facts_.repaired_share = g_.recorded->repaired.share;
    facts_.step_number = g_.window.number;
    facts_.step_us = {g_.window.start_us, g_.window.end_us};
    facts_.gpu_window_end_us = last_gpu_end_us_;
    const auto at = [&](double time_us) { return g_.origin + Nanoseconds{std::llround(time_us * 1e3)}; };
    facts_.memory = allocator_peak(*g_.recorded, at(g_.window.start_us), at(g_.window.end_us));
    facts_.gpu_late_us = starts_.lateness.late_us;
    facts_.late_gpu_work = starts_.lateness.n;
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
  const std::vector<GroupId>& groups_;  // [GpuWork] group of its communication
  const RankStarts& starts_;
  std::vector<std::int64_t>& sequence_of_stack_;
  BlockBuilder builder_;
  InPortId window_begin_;
  std::vector<Interval> measured_;
  std::vector<const CpuWait*> wait_of_call_;
  std::vector<TaskId> call_enter_, call_return_;  // [call]
  std::vector<std::vector<TaskId>> cpu_task_;     // [lane][task] -> last task of it
  std::vector<TaskId> gpu_task_;
  std::vector<LaneId> lane_of_work_;
  std::unordered_map<std::int32_t, StackId> stack_of_op_;
  std::unordered_map<std::uint32_t, NameId> name_;
  struct KeptReturn {
    std::int32_t call;
    double offset_us;  // microseconds since the start of the window
  };
  // Calls that waited for work from before the file.
  std::vector<KeptReturn> kept_returns_;
  TaskId step_end_;
  double last_gpu_end_us_ = 0;
  RecordedStepFacts facts_;
  RecordedHost host_;
};

}  // namespace

// Ranks are processed one after another, and their graphs are freed as soon as the block is built, to bound
// the memory.
Status assemble(std::vector<RankGraph> ranks, std::vector<CpuLanes> lanes, std::vector<RankStarts> starts,
                const Constants& constants, const CollectiveMatch& match, const RebuildOptions& options,
                RecordedProgram& out) {
  out.constants = constants.table();
  const std::vector<std::vector<GroupId>> groups = add_groups(out.program, ranks, match);
  std::vector<std::vector<TaskId>> gpu_task(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const GpuOperations operations = operations_of_gpu_work(ranks[r], {.tf32_allowed = options.tf32_allowed});
    out.coverage.push_back(kernel_time(ranks[r], operations));
    RankAssembler assembler{out.program, out.delays, ranks[r],  lanes[r],  constants,
                            match,       operations, groups[r], starts[r], out.sequence_of_stack};
    auto built = assembler.build();
    if (!built.ok()) return std::move(built).error().in_file(ranks[r].recorded->file);
    gpu_task[r] = std::move(built->gpu_task);
    out.measured.push_back(std::move(built->measured));
    out.facts.push_back(built->facts);
    if (options.host_pieces) out.host.push_back(std::move(built->host));
    out.start_offset_us.push_back(ranks[r].window.start_us);
    const BlockId block = out.program.add_block(std::move(built->finished.block));
    RankClass rank_class{.name = fmt::format("rank {}", ranks[r].rank),
                         .lanes = std::move(built->lanes),
                         .slot_count = 1,
                         .recorded_rank = ranks[r].rank};
    const RankClassId id = out.program.add_rank_class(std::move(rank_class));
    BlockInstance instance{.block = block};
    // The slot contains the start of the rank: the start of its window.
    instance.in_slots = {0};
    out.program.add_instance(id, std::move(instance));
    options.done_with(*ranks[r].recorded);
    ranks[r] = {};
    lanes[r] = {};
    starts[r] = {};
  }
  for (const MatchedCollective& c : match.collectives) {
    Collective collective{
        .op = c.op, .name = out.program.names.intern(c.name), .message_bytes = c.message_bytes};
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

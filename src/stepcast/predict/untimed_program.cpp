#include "stepcast/predict/untimed_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/operation/framework_ops.h"
#include "stepcast/predict/untimed_ranks.h"
#include "stepcast/rebuild/traced_operations.h"

namespace stepcast {
namespace {

using Index = std::int32_t;

// Time from the end of a launching call to the start of its work, and minimum gap between neighbours on a
// stream. Taken from the shortest recorded ones.
constexpr double kLaunchDelayUs = 3, kStreamGapUs = 1;
// If the mean number of calls of an operator is this close to an integer, it is taken to make this number of
// calls here too. Other operators, such as `aten::linear` with and without casts, launch what the dry run
// lists.
constexpr double kSameCalls = 0.25;

// Operator of dry runs that represents a whole CUDA graph.
constexpr std::string_view kCudaGraph = "cuda_graph";

// Whether a node only labels its children and does no work.
bool is_label(std::string_view name) {
  return name.starts_with("[pytorch|") || role_of(name) == OpRole::annotation;
}

bool is_synchronization(std::string_view call) { return call.find("Synchronize") != std::string_view::npos; }

// An outermost operator with all operators that it calls.
struct TopLevelOperator {
  Index node = -1;
  std::vector<Index> below;   // indices of its nodes in depth-first order, itself first
  std::vector<Index> labels;  // annotations around it, innermost first
};

// All outermost operators of a trace in execution order. Labels are skipped: their children count as
// outermost.
std::vector<TopLevelOperator> top_level_operators(const ExecutionTrace& trace) {
  const std::size_t n = trace.nodes.size();
  std::unordered_map<std::int64_t, Index> by_id;
  for (std::size_t i = 0; i < n; ++i) by_id.try_emplace(trace.nodes[i].id, static_cast<Index>(i));
  std::vector<std::vector<Index>> children(n);
  std::vector<Index> roots;
  for (std::size_t i = 0; i < n; ++i) {
    const auto parent = by_id.find(trace.nodes[i].parent);
    if (parent == by_id.end() || parent->second == static_cast<Index>(i)) {
      roots.push_back(static_cast<Index>(i));
    } else {
      children[static_cast<std::size_t>(parent->second)].push_back(static_cast<Index>(i));
    }
  }
  const auto by_order = [&](Index a, Index b) {
    return trace.nodes[static_cast<std::size_t>(a)].order < trace.nodes[static_cast<std::size_t>(b)].order;
  };
  for (auto& list : children) std::stable_sort(list.begin(), list.end(), by_order);
  std::vector<TopLevelOperator> found;
  std::vector<Index> open(roots.rbegin(), roots.rend());
  std::vector<Index> inside;
  std::vector<Index> label_around(n, -1);
  while (!open.empty()) {
    const Index node = open.back();
    open.pop_back();
    const auto& below = children[static_cast<std::size_t>(node)];
    if (const std::string_view name = trace.names.text(trace.nodes[static_cast<std::size_t>(node)].name);
        is_label(name)) {
      open.insert(open.end(), below.rbegin(), below.rend());
      const Index label =
          role_of(name) == OpRole::annotation ? node : label_around[static_cast<std::size_t>(node)];
      for (const Index i : below) label_around[static_cast<std::size_t>(i)] = label;
      continue;
    }
    TopLevelOperator& op = found.emplace_back();
    op.node = node;
    for (Index label = label_around[static_cast<std::size_t>(node)]; label != -1;
         label = label_around[static_cast<std::size_t>(label)])
      op.labels.push_back(label);
    inside.assign(1, node);
    while (!inside.empty()) {
      const Index i = inside.back();
      inside.pop_back();
      op.below.push_back(i);
      const auto& more = children[static_cast<std::size_t>(i)];
      inside.insert(inside.end(), more.rbegin(), more.rend());
    }
  }
  std::stable_sort(found.begin(), found.end(), [&](const TopLevelOperator& a, const TopLevelOperator& b) {
    return by_order(a.node, b.node);
  });
  return found;
}

// Message size by the convention of nccl-tests (CollectiveWork).
Bytes message_of(const EtCollective& c) {
  const bool by_input = c.op == CollectiveOp::all_to_all || c.op == CollectiveOp::reduce_scatter ||
                        c.op == CollectiveOp::all_reduce || c.op == CollectiveOp::send ||
                        c.op == CollectiveOp::receive || c.op == CollectiveOp::send_receive;
  const std::int64_t elements =
      by_input && c.elements_in > 0 ? c.elements_in : std::max(c.elements_in, c.elements_out);
  return Bytes{static_cast<double>(std::max<std::int64_t>(elements, 0)) *
               std::max(element_size(c.dtype).value(), 1.0)};
}

// A part of the GPU work of an operator that a single launch starts.
struct Piece {
  Index node = -1;
  const Operation* operation = nullptr;  // null: a collective or unknown work
  double times = 1;
  std::int32_t collective = -1;  // index into the trace's collectives; -1: none
};

// The GPU work of an operator and everything it calls, before it is distributed over launches.
struct GpuWorkOfOperator {
  std::vector<Piece> pieces;
  std::optional<std::int32_t> awaited_stream;  // stream that the host waits for at the end
};

// A GPU stream; its work runs in order.
struct Stream {
  LaneId lane{};
  TaskId last{};
  std::vector<TaskId> awaited;  // tasks that the next work on the stream must wait for
};

// Builds the block of one rank. Dry runs record the streams of operators, and the events that streams and
// host wait for. Other traces do not: all computation is put on one stream and all communication on another.
class RankBuilder {
 public:
  RankBuilder(Program& program, const UntimedRank& rank, const LaunchTable& launches)
      : program_(program),
        trace_(*rank.trace),
        launches_(launches),
        traced_(traced_operations(trace_, options_of(trace_))),
        has_streams_(trace_.dry_run.has_value()),
        block_(fmt::format("rank {}", rank.rank)) {
    for (const TracedOperation& operation : traced_.operations) {
      operations_of_[static_cast<Index>(operation.node)].push_back(&operation.operation);
    }
    cpu_ = block_.add_lane({LaneKind::cpu_thread, "all threads"});
    stream(0);
    if (!has_streams_) communication({});
  }

  // Adds all operators in order, then the remaining runtime calls and the host time after the last operator.
  Status run(RankGroup group) {
    all_ = program_.add_group(std::move(group));
    for (const TopLevelOperator& op : top_level_operators(trace_)) add(op);
    if (!last_cpu_.valid()) {
      return Error::at(trace_.file, "the nodes")
          .found("no operators")
          .expected("an execution trace of a training step");
    }
    run_calls(trace_.runtime_calls.size(), StackId{});
    host(OverheadType::t1, NameId{}, StackId{});
    return Ok{};
  }

  [[nodiscard]] const std::vector<JoinedTask>& collectives() const { return collectives_; }
  [[nodiscard]] TaskId last_cpu() const { return last_cpu_; }
  BlockBuilder take() { return std::move(block_); }

 private:
  static TracedOperationsOptions options_of(const ExecutionTrace& trace) {
    if (!trace.dry_run) return {};
    return {.tf32_allowed = trace.dry_run->tf32_products,
            .tf32_convolutions = trace.dry_run->tf32_convolutions};
  }

  [[nodiscard]] const EtNode& node_at(Index i) const { return trace_.nodes[static_cast<std::size_t>(i)]; }

  // The stream with this number, with a lane added at first use. Its name is "computation" for number 0.
  Stream& stream(std::int32_t number) {
    Stream& s = streams_[number];
    if (!s.lane.valid()) {
      s.lane = block_.add_lane(
          {LaneKind::gpu_stream, number <= 0 ? "computation" : fmt::format("stream {}", number)});
    }
    return s;
  }

  // The stream of a collective. NCCL has one stream per process group. Receives get their own, because
  // grouped sends and receives run at the same time.
  Stream& communication(const EtCollective& c) {
    const NameId group = has_streams_ ? c.process_group : NameId{};
    Stream& s = communication_[{group, has_streams_ && c.op == CollectiveOp::receive}];
    if (!s.lane.valid()) {
      const std::string_view name = group.valid() ? trace_.names.text(group) : std::string_view{};
      s.lane =
          block_.add_lane({LaneKind::gpu_stream,
                           name.empty() ? "communication" : fmt::format("communication, group {}", name)});
    }
    return s;
  }

  // The ranks of a collective: those of its process group if the trace has it, otherwise all given ranks.
  GroupId group_of(const EtCollective& c) {
    if (!has_streams_) return all_;
    const auto [known, is_new] = groups_.try_emplace(c.process_group);
    if (!is_new) return known->second;
    const auto group = std::ranges::find(trace_.groups, c.process_group, &EtGroup::name);
    RankGroup members{.label = "all ranks"};
    if (group != trace_.groups.end()) {
      members.label = group->label;
      members.ranks = group->ranks;
    }
    constexpr std::int64_t kMostRanks = 1 << 20;
    if (members.ranks.empty()) {
      members.ranks.resize(static_cast<std::size_t>(std::min(trace_.dry_run->world_size, kMostRanks)));
      std::iota(members.ranks.begin(), members.ranks.end(), 0U);
    }
    return known->second = program_.add_group(std::move(members));
  }

  // Sets sender and receiver of a point-to-point transfer as world ranks; leaves -1 if they are unknown.
  void name_peers(const EtCollective& c, JoinedTask& task) const {
    if (c.peer < 0 || !trace_.rank) return;
    const auto group = std::ranges::find(trace_.groups, c.process_group, &EtGroup::name);
    std::int64_t peer = c.peer;
    if (group != trace_.groups.end() && !group->ranks.empty()) {
      if (static_cast<std::size_t>(peer) >= group->ranks.size()) return;
      peer = group->ranks[static_cast<std::size_t>(peer)];
    }
    task.sender = c.op == CollectiveOp::send ? *trace_.rank : peer;
    task.receiver = c.op == CollectiveOp::send ? peer : *trace_.rank;
  }

  // Appends a task with this host overhead to the CPU lane.
  TaskId host(OverheadType type, NameId op, StackId stack) {
    last_cpu_ =
        block_.add_task(cpu_,
                        {.kind = type == OverheadType::t4 ? TaskKind::cpu_call : TaskKind::cpu_segment,
                         .name = type == OverheadType::t1 ? NameId{} : op,
                         .stack = stack,
                         .work = program_.works.intern(HostWork{.type = type, .op = op})},
                        Microseconds{});
    return last_cpu_;
  }

  // Collects the collectives and Operations below an operator. An Operation with several kernels becomes that
  // number of equal pieces.
  GpuWorkOfOperator gpu_work(const TopLevelOperator& op) const {
    GpuWorkOfOperator work;
    for (const Index node : op.below) {
      const std::int32_t collective = node_at(node).collective;
      if (collective >= 0 && !trace_.collectives[static_cast<std::size_t>(collective)].is_wait) {
        work.pieces.push_back({node, nullptr, 1, collective});
      }
      if (has_streams_ && node_at(node).host_waits) work.awaited_stream = std::max(0, node_at(node).stream);
      const auto operations = operations_of_.find(node);
      if (operations == operations_of_.end()) continue;
      for (const Operation* operation : operations->second) {
        const auto kernels = std::max<std::int64_t>(1, work_of(*operation).kernels);
        for (std::int64_t k = 0; k < kernels; ++k) {
          work.pieces.push_back({node, operation, 1.0 / static_cast<double>(kernels), -1});
        }
        const auto* copy = std::get_if<TransferShape>(&operation->shape);
        if (!has_streams_ && copy != nullptr && copy->kind == MemcpyKind::device_to_host)
          work.awaited_stream = 0;
      }
    }
    return work;
  }

  // Runtime calls of an operator: those observed for operators of its name, otherwise one launch for each
  // piece of its work.
  std::vector<std::string> calls_of(std::string_view op, const GpuWorkOfOperator& work) const {
    const auto seen = launches_.find(overhead_name(op));
    std::vector<std::string> calls;
    if (seen != launches_.end()) {
      calls = seen->second.calls;
      if (!has_streams_) return calls;
      const bool always = std::abs(seen->second.mean_calls - static_cast<double>(calls.size())) < kSameCalls;
      std::erase_if(calls, is_synchronization);  // the trace records whether this operator waits
      if ((always || convolves(work)) && calls.size() >= work.pieces.size())
        return with_wait(std::move(calls), work);
    }
    calls.assign(op == kCudaGraph ? std::min<std::size_t>(1, work.pieces.size()) : work.pieces.size(),
                 "cudaLaunchKernel");
    return with_wait(std::move(calls), work);
  }

  // Libraries convert layouts before and after convolutions. These launches are not in a trace of operators.
  static bool convolves(const GpuWorkOfOperator& work) {
    return std::ranges::any_of(work.pieces, [](const Piece& piece) {
      return piece.operation != nullptr && std::holds_alternative<ConvolutionShape>(piece.operation->shape);
    });
  }

  // Appends a synchronising call if the host waits for a stream.
  static std::vector<std::string> with_wait(std::vector<std::string> calls, const GpuWorkOfOperator& work) {
    if (work.awaited_stream) calls.emplace_back("cudaStreamSynchronize");
    return calls;
  }

  // Distributes pieces of work over launches: several pieces for one launch if there are fewer launches, a
  // share of a piece if there are more.
  static std::vector<std::vector<Piece>> share_out(std::vector<Piece> pieces, std::size_t launches) {
    std::vector<std::vector<Piece>> of_launch(launches);
    if (launches == 0 || pieces.empty()) return of_launch;
    if (pieces.size() >= launches) {
      for (std::size_t p = 0; p < pieces.size(); ++p)
        of_launch[p * launches / pieces.size()].push_back(pieces[p]);
      return of_launch;
    }
    std::vector<std::size_t> n(pieces.size(), 0);
    for (std::size_t l = 0; l < launches; ++l) ++n[l * pieces.size() / launches];
    for (std::size_t l = 0; l < launches; ++l) {
      Piece piece = pieces[l * pieces.size() / launches];
      // A collective is one kernel, launched last; the launches before it prepare it.
      if (piece.collective >= 0) {
        if (l + 1 < launches && (l + 1) * pieces.size() / launches == l * pieces.size() / launches) continue;
      } else {
        piece.times /= static_cast<double>(n[l * pieces.size() / launches]);
      }
      of_launch[l].push_back(piece);
    }
    return of_launch;
  }

  // Adds an operator: its host overheads, runtime calls and GPU work.
  void add(const TopLevelOperator& op) {
    const std::string_view text = trace_.names.text(node_at(op.node).name);
    const NameId name = program_.names.intern(text);
    if (op.labels != open_labels_) {
      open_labels_ = op.labels;
      around_ = StackId{};
      for (const Index label : std::views::reverse(op.labels))
        around_ =
            program_.stacks.push(around_, program_.names.intern(trace_.names.text(node_at(label).name)));
    }
    const StackId stack = program_.stacks.push(around_, name);
    host(OverheadType::t1, name, StackId{});
    note_waits(op);
    const GpuWorkOfOperator work = gpu_work(op);
    const std::vector<std::string> calls = calls_of(text, work);
    if (calls.empty() && work.pieces.empty()) {
      host(OverheadType::t5, name, stack);
      run_calls_in_front_of(op.below.back() + 1, stack);
      remember_results(op, {});
      return;
    }
    const auto launches = static_cast<std::size_t>(std::count_if(
        calls.begin(), calls.end(), [](const std::string& call) { return !is_synchronization(call); }));
    const std::vector<std::vector<Piece>> of_launch = share_out(work.pieces, launches);
    host(OverheadType::t2, name, stack);
    std::vector<TaskId> transfers;
    std::size_t launch = 0;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      if (c > 0) host(OverheadType::t5, name, stack);
      const bool synchronizes = is_synchronization(calls[c]);
      if (!synchronizes && !of_launch[launch].empty())
        run_calls_in_front_of(of_launch[launch].front().node + 1, stack);
      const TaskId call = host(OverheadType::t4, program_.names.intern(calls[c]), stack);
      if (synchronizes) {
        wait_for_stream(stream(work.awaited_stream.value_or(0)), stack);
        continue;
      }
      for (const Piece& piece : of_launch[launch]) add_gpu(piece, name, stack, call, transfers);
      ++launch;
    }
    // Work of an operator without observed launches is launched by its last host task.
    if (launches == 0) {
      for (const Piece& piece : work.pieces) add_gpu(piece, name, stack, last_cpu_, transfers);
    }
    run_calls_in_front_of(op.below.back() + 1, stack);
    host(OverheadType::t3, name, stack);
    remember_results(op, transfers);
  }

  // Adds an edge: `waiting` starts after `task` has ended.
  void wait_for(TaskId task, TaskId waiting, EdgeOrigin origin, bool inferred) {
    block_.add_edge(BlockBuilder::end_of(task), waiting, Microseconds{},
                    {.origin = origin, .inferred = inferred});
  }

  // Adds one piece of GPU work, launched by `call`, with its dependencies on the stream and on awaited tasks.
  // Collectives are also appended to `transfers`.
  void add_gpu(const Piece& piece, NameId op, StackId stack, TaskId call, std::vector<TaskId>& transfers) {
    const bool joins = piece.collective >= 0;
    if (has_streams_) run_calls_in_front_of(piece.node + 1, stack);
    Stream& issuing = stream(std::max(0, node_at(piece.node).stream));
    TaskInfo info;
    info.kind = joins ? TaskKind::collective : TaskKind::kernel;
    info.name = op;
    info.stack = stack;
    info.work_times = piece.times;
    Stream* own = &issuing;
    if (joins) {
      const EtCollective& c = trace_.collectives[static_cast<std::size_t>(piece.collective)];
      info.kernel_class = KernelClass::communication;
      const GroupId group = group_of(c);
      info.work = program_.works.intern(
          CollectiveWork{.op = c.op, .dtype = c.dtype, .message = message_of(c), .group = group});
      if (!has_streams_ || c.has_stream) own = &communication(c);
      collectives_.push_back({c.op, op, message_of(c).value(), TaskId{}, group});
      if (has_streams_) name_peers(c, collectives_.back());
    } else if (piece.operation != nullptr) {
      if (std::holds_alternative<TransferShape>(piece.operation->shape)) info.kind = TaskKind::memcpy;
      info.kernel_class = kernel_class_of(*piece.operation);
      info.work = program_.works.intern(*piece.operation);
    }
    const TaskId task = block_.add_task(own->lane, info, Microseconds{});
    block_.add_edge(BlockBuilder::end_of(call), task, Microseconds{kLaunchDelayUs},
                    {.origin = EdgeOrigin::launch});
    if (own->last.valid()) {
      block_.add_edge(BlockBuilder::end_of(own->last), task, Microseconds{kStreamGapUs},
                      {.origin = EdgeOrigin::stream_order});
    }
    if (joins && own != &issuing) {
      if (issuing.last.valid()) wait_for(issuing.last, task, EdgeOrigin::event, !has_streams_);
      if (has_streams_)
        for (const TaskId awaited : issuing.awaited) wait_for(awaited, task, EdgeOrigin::event, false);
    } else {
      for (const TaskId awaited : issuing.awaited)
        wait_for(awaited, task, has_streams_ ? EdgeOrigin::event : EdgeOrigin::tensor, !has_streams_);
      issuing.awaited.clear();
    }
    own->last = task;
    if (!joins) return;
    collectives_.back().task = task;
    transfers.push_back(task);
    const EtCollective& c = trace_.collectives[static_cast<std::size_t>(piece.collective)];
    by_sequence_[{has_streams_ ? c.process_group : NameId{}, c.sequence}] = task;
  }

  // The host waits until a stream has finished, including everything that the stream waits for.
  void wait_for_stream(const Stream& s, StackId stack) {
    std::vector<TaskId> tasks = s.awaited;
    if (s.last.valid()) tasks.push_back(s.last);
    hold_host(tasks, stack);
  }

  // Adds a task to the CPU lane that ends after all `tasks`.
  void hold_host(const std::vector<TaskId>& tasks, StackId stack) {
    const TaskId back = block_.add_task(
        cpu_, {.kind = TaskKind::sync_return, .stack = stack, .work = program_.works.intern(Waiting{})},
        Microseconds{});
    for (const TaskId awaited : tasks) wait_for(awaited, back, EdgeOrigin::synchronization, false);
    last_cpu_ = back;
  }

  // Runs the recorded runtime calls before this node that have not run yet.
  void run_calls_in_front_of(Index node, StackId stack) {
    std::size_t end = next_call_;
    while (end < trace_.runtime_calls.size() && static_cast<Index>(trace_.runtime_calls[end].before) < node)
      ++end;
    run_calls(end, stack);
  }

  void run_calls(std::size_t end, StackId stack) {
    for (; next_call_ < end; ++next_call_) run_call(trace_.runtime_calls[next_call_], stack);
  }

  // Applies a recorded event or synchronisation to the streams and the host.
  void run_call(const EtRuntimeCall& call, StackId stack) {
    using Kind = EtRuntimeCall::Kind;
    switch (call.kind) {
      case Kind::record_event: {
        const Stream& s = stream(call.stream);
        std::vector<TaskId>& done = events_[call.event];
        done = s.awaited;
        if (s.last.valid()) done.push_back(s.last);
        break;
      }
      case Kind::wait_event:
        for (const TaskId task : events_[call.event]) await(stream(call.stream), task);
        break;
      case Kind::sync_stream: wait_for_stream(stream(call.stream), stack); break;
      case Kind::sync_event: hold_host(events_[call.event], stack); break;
      case Kind::sync_device: {
        std::vector<TaskId> tasks;
        for (const auto& [number, s] : streams_) {
          tasks.insert(tasks.end(), s.awaited.begin(), s.awaited.end());
          if (s.last.valid()) tasks.push_back(s.last);
        }
        for (const auto& [group, s] : communication_)
          if (s.last.valid()) tasks.push_back(s.last);
        hold_host(tasks, stack);
        break;
      }
    }
  }

  // The next work on the stream waits for `task`.
  static void await(Stream& s, TaskId task) {
    if (task.valid() && std::ranges::find(s.awaited, task) == s.awaited.end()) s.awaited.push_back(task);
  }

  // Finds the collectives that the operator's work must wait for: those with a result that it, or an operator
  // it calls, reads.
  void note_waits(const TopLevelOperator& op) {
    for (const Index node : op.below) {
      Stream& reader = stream(std::max(0, node_at(node).stream));
      for (const TensorUse& use : trace_.inputs(node_at(node))) {
        if (has_streams_) break;  // waits are recorded
        const auto written = written_by_.find(use.storage);
        if (written == written_by_.end() || use.storage == 0) continue;
        await(reader, written->second);
        written_by_.erase(written);
      }
      const std::int32_t collective = node_at(node).collective;
      if (collective < 0) continue;
      const EtCollective& c = trace_.collectives[static_cast<std::size_t>(collective)];
      if (!c.is_wait) continue;
      const auto started = by_sequence_.find({has_streams_ ? c.process_group : NameId{}, c.sequence});
      await(reader, started == by_sequence_.end() ? communication(c).last : started->second);
    }
  }

  // Notes which storages the collectives of an operator write.
  void remember_results(const TopLevelOperator& op, const std::vector<TaskId>& transfers) {
    if (transfers.empty()) return;
    for (const Index node : op.below) {
      const EtNode& n = node_at(node);
      // Reductions write in place, so inputs count as well; others write to their outputs.
      for (const TensorUse& use : trace_.outputs(n)) written_by_[use.storage] = transfers.back();
      if (n.collective < 0) continue;
      for (const TensorUse& use : trace_.inputs(n)) written_by_[use.storage] = transfers.back();
    }
  }

  Program& program_;
  const ExecutionTrace& trace_;
  const LaunchTable& launches_;
  TracedOperations traced_;
  bool has_streams_;
  std::unordered_map<Index, std::vector<const Operation*>> operations_of_;
  BlockBuilder block_;
  LaneId cpu_;
  std::map<std::int32_t, Stream> streams_;
  std::map<std::pair<NameId, bool>, Stream> communication_;  // [process group, is a receive]
  GroupId all_{};
  std::map<NameId, GroupId> groups_;  // [process group]
  TaskId last_cpu_{};
  std::vector<Index> open_labels_;  // those in around_, innermost first
  StackId around_{};
  std::unordered_map<std::int64_t, TaskId> written_by_;  // [storage] -> the collective that wrote it last
  // [process group, sequence number] -> the collective.
  std::map<std::pair<NameId, std::int64_t>, TaskId> by_sequence_;
  std::unordered_map<std::uint64_t, std::vector<TaskId>> events_;  // [event] -> the tasks before it
  std::size_t next_call_ = 0;                                      // index into the trace's runtime calls
  std::vector<JoinedTask> collectives_;
};

}  // namespace

Result<RecordedProgram> untimed_program(std::span<const UntimedRank> ranks, const LaunchTable& launches) {
  STEPCAST_ASSIGN(const RankGroup all, all_ranks(ranks));
  RecordedProgram out;
  std::vector<UntimedBlock> blocks;
  for (const UntimedRank& rank : ranks) {
    out.is_dry_run |= rank.trace->dry_run.has_value();
    out.channels_last |= rank.trace->dry_run && rank.trace->dry_run->channels_last;
    RankBuilder builder{out.program, rank, launches};
    STEPCAST_TRY(builder.run(all));
    std::vector<JoinedTask> collectives = builder.collectives();
    const TaskId last = builder.last_cpu();
    blocks.push_back({builder.take(), std::move(collectives), last});
  }
  STEPCAST_TRY(join_untimed(ranks, std::move(blocks), out));
  return out;
}

}  // namespace stepcast

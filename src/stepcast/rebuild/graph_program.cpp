// Builds a Program from operation graphs (Chakra). Nodes become tasks in an order that respects all
// dependencies. Transfers are joined between ranks by position: the k-th collective of a group, the k-th
// message between two ranks with a tag.
#include "stepcast/rebuild/graph_program.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/names.h"
#include "stepcast/operation/kernel_class.h"
#include "stepcast/operation/operation.h"

namespace stepcast {
namespace {

using Kind = GraphNode::Kind;
using NodeIndex = std::uint32_t;

// Collectives and messages, which involve other ranks.
bool is_transfer(Kind kind) {
  return kind == Kind::collective || kind == Kind::send || kind == Kind::receive;
}

// The nodes in an order in which they can run. Among ready nodes the one with the earliest start is next,
// then the one with the smallest id. Error: the dependencies contain a cycle; the message shows it.
Result<std::vector<NodeIndex>> running_order(const OperationGraph& graph) {
  const std::size_t n = graph.nodes.size();
  std::vector<NodeIndex> open(n, 0), first_waiting(n + 1, 0);
  for (const NodeIndex dependency : graph.dependencies) ++first_waiting[dependency + 1];
  for (std::size_t i = 0; i < n; ++i) first_waiting[i + 1] += first_waiting[i];
  std::vector<NodeIndex> waiting(graph.dependencies.size()),
      next(first_waiting.begin(), first_waiting.end() - 1);
  for (NodeIndex i = 0; i < n; ++i) {
    for (const NodeIndex dependency : graph.dependencies_of(graph.nodes[i])) {
      waiting[next[dependency]++] = i;
      ++open[i];
    }
  }
  const auto later = [&](NodeIndex a, NodeIndex b) {
    const GraphNode& x = graph.nodes[a];
    const GraphNode& y = graph.nodes[b];
    return std::tuple{x.start_us, x.id} > std::tuple{y.start_us, y.id};
  };
  std::priority_queue<NodeIndex, std::vector<NodeIndex>, decltype(later)> ready(later);
  for (NodeIndex i = 0; i < n; ++i)
    if (open[i] == 0) ready.push(i);
  std::vector<NodeIndex> order;
  order.reserve(n);
  while (!ready.empty()) {
    const NodeIndex node = ready.top();
    ready.pop();
    order.push_back(node);
    for (NodeIndex w = first_waiting[node]; w < first_waiting[node + 1]; ++w)
      if (--open[waiting[w]] == 0) ready.push(waiting[w]);
  }
  if (order.size() == n) return order;
  // Follow unmet dependencies until a node repeats.
  NodeIndex at =
      static_cast<NodeIndex>(std::ranges::find_if(open, [](NodeIndex o) { return o > 0; }) - open.begin());
  std::map<NodeIndex, std::size_t> seen;
  std::vector<NodeIndex> path;
  while (!seen.contains(at)) {
    seen[at] = path.size();
    path.push_back(at);
    for (const NodeIndex dependency : graph.dependencies_of(graph.nodes[at])) {
      if (open[dependency] > 0) {
        at = dependency;
        break;
      }
    }
  }
  std::string circle;
  std::size_t shown = 0;
  for (std::size_t i = seen[at]; i < path.size() && shown < 5; ++i, ++shown)
    circle += fmt::format("{} waits for ", graph.nodes[path[i]].id);
  circle += path.size() - seen[at] > shown ? std::string{"..."} : std::to_string(graph.nodes[at].id);
  return Error::at(graph.file, "dependencies")
      .found(fmt::format("nodes in a circular dependency: {}", circle))
      .expected("a graph without circles");
}

// Identifies the lane of a node: threads, streams, and separate lanes for collectives without a stream, sends
// and receives.
struct LaneKey {
  enum class Role : std::uint8_t { cpu, gpu, collectives, sends, receives };
  Role role = Role::gpu;
  std::int64_t number = -1;
  std::string_view group{};  // for collectives without a stream
  auto operator<=>(const LaneKey&) const = default;
};

// Nodes on the CPU have lanes of threads. Sends, receives, and collectives without a stream have separate
// lanes, so that they do not wait for computation.
LaneKey lane_of(const OperationGraph& graph, const GraphNode& node) {
  using Role = LaneKey::Role;
  if (node.on_cpu) return {Role::cpu, node.lane};
  switch (node.kind) {
    case Kind::send: return {Role::sends, node.lane};
    case Kind::receive: return {Role::receives, node.lane};
    case Kind::collective:
      if (node.lane >= 0) return {Role::gpu, node.lane};
      return {Role::collectives, -1, node.group.valid() ? graph.names.text(node.group) : std::string_view{}};
    case Kind::computation:
    case Kind::memory_load:
    case Kind::memory_store: break;
  }
  return {Role::gpu, node.lane};
}

Lane make_lane(const LaneKey& key) {
  const std::string number = key.number >= 0 ? fmt::format(" {}", key.number) : std::string{};
  switch (key.role) {
    case LaneKey::Role::cpu: return {LaneKind::cpu_thread, "thread" + number, key.number};
    case LaneKey::Role::gpu:
      return {LaneKind::gpu_stream, key.number >= 0 ? "stream" + number : "computation", key.number};
    case LaneKey::Role::collectives:
      return {LaneKind::gpu_stream,
              key.group.empty() ? std::string{"collectives"} : fmt::format("collectives of {}", key.group)};
    case LaneKey::Role::sends: return {LaneKind::gpu_stream, "sends" + number, key.number};
    case LaneKey::Role::receives: return {LaneKind::gpu_stream, "receives" + number, key.number};
  }
  return {};
}

// Identifies a transfer: the k-th collective of a group with a tag, or the k-th message between two ranks
// with a tag.
struct TransferKey {
  bool point_to_point = false;
  std::string group;
  std::int32_t source = -1, destination = -1;
  std::int64_t tag = 0;
  std::uint32_t occurrence = 0;
  auto operator<=>(const TransferKey&) const = default;
};

// One rank's part in a transfer.
struct TransferMember {
  std::size_t rank = 0;  // position of the rank
  NodeIndex node = 0;
  TaskId task;
};

// Builds the Program rank by rank and then joins the transfers.
class GraphProgram {
 public:
  explicit GraphProgram(std::span<const OperationGraph> graphs) : graphs_(graphs) {}

  Result<RecordedProgram> run() {
    STEPCAST_TRY(sort_ranks());
    for (std::size_t r = 0; r < ranks_.size(); ++r) find_transfers(r);
    make_groups();
    for (std::size_t r = 0; r < ranks_.size(); ++r) STEPCAST_TRY(add_rank(r));
    join();
    note();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const OperationGraph& graph(std::size_t r) const { return *ranks_[r]; }
  [[nodiscard]] std::int32_t rank_number(std::size_t r) const { return graph(r).rank.value_or(0); }

  // Sorts the ranks. Errors: no graph, two files with the same rank.
  Status sort_ranks() {
    if (graphs_.empty()) return Error{"no graph of operations was given; give one file per rank"};
    for (const OperationGraph& graph : graphs_) ranks_.push_back(&graph);
    std::ranges::stable_sort(ranks_, [](const OperationGraph* a, const OperationGraph* b) {
      return a->rank.value_or(0) < b->rank.value_or(0);
    });
    for (std::size_t r = 1; r < ranks_.size(); ++r) {
      if (rank_number(r) != rank_number(r - 1)) continue;
      return Error::at(graph(r).file, "rank")
          .found(fmt::format("{} as in {}", rank_number(r), graph(r - 1).file))
          .expected("one file per rank")
          .advice("name the files so that their last number is the rank, such as trace.3.et");
    }
    return Ok{};
  }

  // Finds the transfers of a rank in the order of their starts, or of ids without times.
  void find_transfers(std::size_t r) {
    const OperationGraph& g = graph(r);
    std::vector<NodeIndex> by_id(g.nodes.size());
    for (NodeIndex i = 0; i < by_id.size(); ++i) by_id[i] = i;
    std::ranges::sort(by_id, [&](NodeIndex a, NodeIndex b) {
      return std::tuple{g.nodes[a].start_us, g.nodes[a].id} < std::tuple{g.nodes[b].start_us, g.nodes[b].id};
    });
    std::map<TransferKey, std::uint32_t> count;
    key_of_.emplace_back();
    for (const NodeIndex i : by_id) {
      const GraphNode& node = g.nodes[i];
      if (!is_transfer(node.kind)) continue;
      TransferKey key;
      if (node.kind == Kind::collective) {
        if (node.group.valid()) key.group = g.names.text(node.group);
      } else {
        key.point_to_point = true;
        key.source = node.kind == Kind::send ? rank_number(r) : node.peer;
        key.destination = node.kind == Kind::send ? node.peer : rank_number(r);
        key.tag = node.tag;
      }
      if (node.kind == Kind::collective) key.tag = node.tag;
      key.occurrence = count[key]++;
      key_of_.back().emplace(i, key);
      transfers_[key].push_back({r, i, {}});
      if (node.kind == Kind::collective)
        group_ranks_[key.group].insert(static_cast<std::uint32_t>(rank_number(r)));
    }
  }

  // Adds the process groups, and decides for each transfer whether all of its members agree.
  void make_groups() {
    for (const auto& [name, ranks] : group_ranks_) {
      groups_[name] = out_.program.add_group(
          {name.empty() ? std::string{"all ranks"} : "process group " + name, {ranks.begin(), ranks.end()}});
    }
    for (auto& [key, members] : transfers_) joined_[key] = joins(key, members);
  }

  // True if the transfer can be joined: a message has two ends; a collective has all ranks of its group with
  // the same operation.
  bool joins(const TransferKey& key, const std::vector<TransferMember>& members) const {
    if (key.point_to_point) return members.size() == 2;
    if (members.size() != group_ranks_.at(key.group).size()) return false;
    return std::ranges::all_of(members, [&](const TransferMember& m) {
      return graph(m.rank).nodes[m.node].op == graph(members.front().rank).nodes[members.front().node].op;
    });
  }

  // Duration of a node. A transfer that several ranks recorded takes the shortest of their durations, since
  // the others waited for the last rank.
  double duration_us(std::size_t r, NodeIndex i) const {
    const GraphNode& node = graph(r).nodes[i];
    double shortest = std::max(0.0, node.duration_us);
    if (!is_transfer(node.kind)) return shortest;
    const TransferKey& key = key_of_[r].at(i);
    if (!joined_.at(key)) return shortest;
    for (const TransferMember& m : transfers_.at(key))
      shortest = std::min(shortest, std::max(0.0, graph(m.rank).nodes[m.node].duration_us));
    return shortest;
  }

  // The work of a node, from which a platform can price it. Empty if the graph has no sizes.
  WorkId work_of(std::size_t r, NodeIndex i, NameId name) {
    const GraphNode& node = graph(r).nodes[i];
    const double bytes = std::max(0.0, node.bytes);
    switch (node.kind) {
      case Kind::collective: {
        const std::string& group = key_of_[r].at(i).group;
        const auto members = static_cast<double>(group_ranks_.at(group).size());
        // Chakra counts the input of each rank. nccl-tests count the output for all-gather.
        const bool gathers = node.op == CollectiveOp::all_gather;
        return out_.program.works.intern(CollectiveWork{.op = node.op,
                                                        .dtype = DType::unknown,
                                                        .message = Bytes{bytes * (gathers ? members : 1)},
                                                        .group = groups_.at(group)});
      }
      case Kind::send:
      case Kind::receive: {
        if (node.peer < 0 || node.peer == rank_number(r)) return {};
        const auto own = static_cast<std::uint32_t>(rank_number(r)),
                   peer = static_cast<std::uint32_t>(node.peer);
        const GroupId pair =
            out_.program.add_group({"point to point", {std::min(own, peer), std::max(own, peer)}});
        return out_.program.works.intern(CollectiveWork{.op = CollectiveOp::send_receive,
                                                        .dtype = DType::unknown,
                                                        .message = Bytes{bytes},
                                                        .group = pair});
      }
      case Kind::memory_load:
      case Kind::memory_store: {
        if (bytes <= 0 || bytes > 1e18) return {};
        const MemcpyKind direction =
            node.kind == Kind::memory_load ? MemcpyKind::host_to_device : MemcpyKind::device_to_host;
        return out_.program.works.intern(
            Operation{TransferShape{.kind = direction, .bytes = static_cast<std::int64_t>(bytes)}});
      }
      case Kind::computation: break;
    }
    if (node.on_cpu) {
      return out_.program.works.intern(
          HostWork{.activity = HostWork::Activity::overhead, .type = OverheadType::t5, .op = name});
    }
    if (node.flops <= 0 && bytes <= 0) return {};
    // The graph has one number for read and written bytes together.
    return out_.program.works.intern(Operation{AmountShape{.flops = std::max(0.0, node.flops),
                                                           .bytes_read = bytes,
                                                           .matrix = node.flops > 0,
                                                           .kernel_class = KernelClass::other},
                                               DType::bf16});
  }

  // The task of a node, without its duration.
  TaskInfo task_of(std::size_t r, NodeIndex i) {
    const OperationGraph& g = graph(r);
    const GraphNode& node = g.nodes[i];
    TaskInfo info{.name = out_.program.names.intern(g.names.text(node.name)), .recorded_event = i};
    info.work = work_of(r, i, info.name);
    if (is_transfer(node.kind)) {
      info.kind = TaskKind::collective;
      info.kernel_class = KernelClass::communication;
    } else if (node.on_cpu) {
      info.kind = TaskKind::cpu_segment;
    } else {
      info.kind = node.kind == Kind::computation ? TaskKind::kernel : TaskKind::memcpy;
      info.kernel_class =
          node.kind == Kind::computation ? classify_kernel(g.names.text(node.name)) : KernelClass::memory;
    }
    return info;
  }

  // The node that represents the time before the rank starts. It is not work of the rank.
  static bool is_begin(const OperationGraph& g, NodeIndex i) { return g.step && i == g.step->begin_node; }

  // Adds an edge for a dependency with its delay. A negative delay means that the waiting node starts before
  // the other one ends.
  static void add_dependency(const OperationGraph& g, std::pair<NodeIndex, TaskId> on,
                             std::pair<NodeIndex, TaskId> waiting, double delay_us, BlockBuilder& block) {
    const bool from_cpu = g.nodes[on.first].on_cpu, on_cpu = g.nodes[waiting.first].on_cpu;
    const EdgeOrigin origin = from_cpu && !on_cpu   ? EdgeOrigin::launch
                              : !from_cpu && on_cpu ? EdgeOrigin::synchronization
                                                    : EdgeOrigin::dependency;
    // A delay that ends before the node ends is counted from the start of the node.
    const double from_start_us = std::max(0.0, g.nodes[on.first].duration_us) + delay_us;
    block.add_edge(delay_us < 0 ? BlockBuilder::start_of(on.second) : BlockBuilder::end_of(on.second),
                   waiting.second, Microseconds{delay_us < 0 ? std::max(0.0, from_start_us) : delay_us},
                   {.origin = origin});
  }

  // Builds the block of one rank. Error: the dependencies of its nodes contain a cycle.
  Status add_rank(std::size_t r) {
    const OperationGraph& g = graph(r);
    STEPCAST_ASSIGN(const std::vector<NodeIndex> order, running_order(g));
    BlockBuilder block{fmt::format("rank {}", rank_number(r))};
    std::map<LaneKey, LaneId> lanes;
    std::vector<LaneId> lane_of_node(g.nodes.size());
    std::vector<TaskId> task_of_node(g.nodes.size());
    const InPortId begin = g.step ? block.add_in_port("begin of the rank") : InPortId{};
    for (const NodeIndex i : order) {
      if (is_begin(g, i)) continue;
      const LaneKey key = lane_of(g, g.nodes[i]);
      auto lane = lanes.find(key);
      if (lane == lanes.end()) lane = lanes.emplace(key, block.add_lane(make_lane(key))).first;
      lane_of_node[i] = lane->second;
      task_of_node[i] = block.add_task(lane->second, task_of(r, i), Microseconds{duration_us(r, i)});
      for (std::size_t d = g.nodes[i].first_dependency; d < g.nodes[i].end_dependency; ++d) {
        const NodeIndex dependency = g.dependencies[d];
        const double delay_us = g.delays_us.empty() ? 0 : g.delays_us[d];
        if (is_begin(g, dependency)) {  // nothing runs before it in any case
          if (delay_us > 0)
            block.add_edge(BlockBuilder::arrival_at(begin), task_of_node[i], Microseconds{delay_us},
                           {.origin = EdgeOrigin::recorded_offset});
          continue;
        }
        if (lane_of_node[dependency] == lane->second && delay_us <= 0)
          continue;  // the order of the lane already enforces it
        add_dependency(g, {dependency, task_of_node[dependency]}, {i, task_of_node[i]}, delay_us, block);
      }
    }
    RankClass rank_class{.name = fmt::format("rank {}", rank_number(r))};
    rank_class.lanes.assign(block.lanes().begin(), block.lanes().end());
    rank_class.recorded_rank = rank_number(r);
    auto finished = std::move(block).finish_with_map();
    if (!finished.ok()) return std::move(finished).error().in_file(g.file);
    for (auto& [i, key] : key_of_[r]) {
      for (TransferMember& m : transfers_.at(key))
        if (m.rank == r && m.node == i) m.task = finished->new_id[task_of_node[i].index()];
    }
    add_facts(r, task_of_node, *finished);
    const BlockId id = out_.program.add_block(std::move(finished->block));
    if (g.step) rank_class.slot_count = 1;
    BlockInstance instance{.block = id};
    if (g.step) instance.in_slots = {0};  // start of the rank
    out_.program.add_instance(out_.program.add_rank_class(std::move(rank_class)), std::move(instance));
    return Ok{};
  }

  // Recorded starts are on a clock of the file, so each rank starts at its own zero. If the step is marked, a
  // rank starts when its begin node ends.
  void add_facts(std::size_t r, const std::vector<TaskId>& task_of_node,
                 const BlockBuilder::Finished& finished) {
    const OperationGraph& g = graph(r);
    const bool timed = !g.step && std::ranges::all_of(g.nodes, [](const GraphNode& node) {
      return node.start_us >= 0 && node.duration_us >= 0;
    });
    double origin = std::numeric_limits<double>::infinity();
    for (const GraphNode& node : g.nodes) origin = std::min(origin, node.start_us);
    RecordedStepFacts facts{.rank = rank_number(r)};
    std::vector<Interval> measured(finished.block.task_count());
    if (timed) {
      double end = 0;
      for (std::size_t i = 0; i < g.nodes.size(); ++i) {
        const GraphNode& node = g.nodes[i];
        const double start = node.start_us - origin;
        measured[finished.new_id[task_of_node[i].index()].index()] = {start, start + node.duration_us};
        end = std::max(end, start + node.duration_us);
      }
      facts.step_us = {0, end};
      facts.gpu_window_end_us = end;
    }
    if (g.step) {
      facts.step_number = g.step->number;
      facts.step_us = {g.step->start_us, g.step->start_us};  // the start; its duration is not recorded
      facts.step_end_task = finished.new_id[task_of_node[g.step->end_node].index()];
      facts.step_ends_at_start = g.step->ends_at_start;
    }
    out_.facts.push_back(facts);
    out_.measured.push_back(std::move(measured));
    out_.start_offset_us.push_back(g.step ? std::max(0.0, g.nodes[g.step->begin_node].duration_us) : 0);
    RecordedFileFacts files{.execution_trace = g.file, .event_count = g.nodes.size()};
    if (g.metadata_nodes > 0) files.skipped["metadata node"] = g.metadata_nodes;
    if (g.callers > 0) files.skipped["control dependency on a caller"] = g.callers;
    if (g.dangling > 0) files.skipped["dependency on a node that is not in the file"] = g.dangling;
    out_.files.push_back(std::move(files));
  }

  // Adds one collective per joined transfer, and one per member of the others.
  void join() {
    for (const auto& [key, members] : transfers_) {
      const bool all = joined_.at(key);
      for (std::size_t first = 0; first < members.size(); first += all ? members.size() : 1) {
        const GraphNode& node = graph(members[first].rank).nodes[members[first].node];
        Collective collective{
            .op = key.point_to_point ? CollectiveOp::send_receive : node.op,
            .name = out_.program.names.intern(graph(members[first].rank).names.text(node.name)),
            .message_bytes = node.bytes};
        const std::size_t n = all ? members.size() : 1;
        for (std::size_t m = first; m < first + n; ++m) {
          const bool sends = graph(members[m].rank).nodes[members[m].node].kind == Kind::send;
          if (sends) collective.root = static_cast<std::uint32_t>(m - first);
          collective.members.push_back({RankClassId{members[m].rank}, InstanceId{0}, members[m].task});
        }
        if (key.point_to_point && all) collective.kind = CollectiveKind::rooted_from;
        out_.program.add_collective(std::move(collective));
      }
      if (!all && key.point_to_point) ++lonely_transfers_;
      if (!all && !key.point_to_point) ++lonely_collectives_;
    }
  }

  // Adds notes about missing durations, sizes, dependencies and partners.
  void note() {
    std::uint64_t untimed = 0, unknown = 0, dangling = 0, bad = 0, nodes = 0;
    for (const OperationGraph* g : ranks_) {
      nodes += g->nodes.size();
      dangling += g->dangling;
      bad += g->bad_times;
      for (const GraphNode& node : g->nodes) {
        if (node.duration_us >= 0) continue;
        ++untimed;
        if (node.flops <= 0 && node.bytes <= 0) ++unknown;
      }
    }
    if (untimed > 0) {
      std::string text = fmt::format("{} of {} nodes have no recorded duration", untimed, nodes);
      if (unknown > 0) text += fmt::format("; {} of them have no size either", unknown);
      out_.notes.push_back(std::move(text));
    }
    if (bad > 0)
      out_.notes.push_back(
          fmt::format("warning: {} nodes have an invalid start or duration, which is ignored", bad));
    if (dangling > 0)
      out_.notes.push_back(fmt::format("{} dependencies on missing nodes were left out", dangling));
    if (lonely_transfers_ > 0) {
      out_.notes.push_back(
          fmt::format("{} sends or receives have no counterpart in these files: they are not synchronised",
                      lonely_transfers_));
    }
    if (lonely_collectives_ > 0) {
      out_.notes.push_back(fmt::format(
          "{} collectives differ between the ranks in number or operation: these are not synchronised",
          lonely_collectives_));
    }
    if (ranks_.size() == 1 && !group_ranks_.empty())
      out_.notes.emplace_back(
          "only one rank: its collectives are not synchronised; give the files of all ranks");
  }

  std::span<const OperationGraph> graphs_;
  std::vector<const OperationGraph*> ranks_;  // in ascending order of rank
  RecordedProgram out_;
  std::vector<std::map<NodeIndex, TransferKey>> key_of_;  // [rank position] by node
  std::map<TransferKey, std::vector<TransferMember>> transfers_;
  std::map<TransferKey, bool> joined_;
  std::map<std::string, std::set<std::uint32_t>> group_ranks_;
  std::map<std::string, GroupId> groups_;
  std::uint64_t lonely_transfers_ = 0, lonely_collectives_ = 0;
};

}  // namespace

Result<RecordedProgram> graph_program(std::span<const OperationGraph> ranks) {
  return GraphProgram{ranks}.run();
}

}  // namespace stepcast

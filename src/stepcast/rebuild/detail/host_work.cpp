// Assigns the time of CPU threads to the five overheads of Lin et al. (TPDS 2024). T1: between two top-level
// operators. T2: from the start of an operator to its first launch. T3: from its last launch to its end. T4:
// a runtime call. T5: between two launches, or a whole operator without a launch.
#include "stepcast/rebuild/detail/host_work.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "stepcast/operation/framework_ops.h"
#include "stepcast/operation/overhead_name.h"
#include "stepcast/rebuild/detail/item.h"

namespace stepcast::detail {
namespace {

// Finds the top-level operator around an operator. Results are cached for all operators on the way, so the
// total cost is linear.
class TopLevelOperators {
 public:
  explicit TopLevelOperators(const RankGraph& g) : g_(g), of_op_(g.recorded->cpu_ops.size(), kUnknown) {}

  // The outermost operator around `op` that is not a label (annotation or step), or `op` itself; kNone if
  // only labels are open.
  std::int32_t of(std::int32_t op) {
    std::int32_t around = op;
    while (around != kNone && of_op_[static_cast<std::size_t>(around)] == kUnknown) {
      inward_.push_back(around);
      around = g_.parent_of_op[static_cast<std::size_t>(around)];
    }
    std::int32_t found = around == kNone ? kNone : of_op_[static_cast<std::size_t>(around)];
    for (; !inward_.empty(); inward_.pop_back()) {
      const std::int32_t inner = inward_.back();
      if (found == kNone && !is_label(inner)) found = inner;
      of_op_[static_cast<std::size_t>(inner)] = found;
    }
    return found;
  }

 private:
  static constexpr std::int32_t kUnknown = -2;

  // Annotations and steps, and operators that only name a scope.
  bool is_label(std::int32_t op) {
    const CpuOp& recorded = g_.recorded->cpu_ops[static_cast<std::size_t>(op)];
    if (recorded.kind != CpuOp::Kind::op) return true;
    const auto [it, fresh] = labels_.try_emplace(recorded.name.index(), false);
    if (fresh) it->second = role_of(g_.recorded->names.text(recorded.name)) == OpRole::annotation;
    return it->second;
  }

  const RankGraph& g_;
  std::vector<std::int32_t> of_op_;
  std::vector<std::int32_t> inward_;                // operators from inner to outer
  std::unordered_map<std::uint32_t, bool> labels_;  // by name
};

// Calls that the overheads count as launches: they start GPU work or wait for a stream.
bool is_launch(const Call& call) {
  return call.kind == CallKind::launch || call.kind == CallKind::stream_sync;
}

// A piece of host time and the tasks in it.
struct Piece {
  CutPiece cut;
  std::vector<std::uint32_t> tasks;  // positions in the lane
};

// Operators of a lane's thread inside the step, by start.
struct OpsOfLane {
  std::vector<std::int32_t> top_level;
  std::vector<std::int32_t> labels;
  // [top-level operator] operators inside it
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> inside;
};

// Tells whether an operator or label is a data loader or is inside one. Results are cached.
class DataLoaders {
 public:
  explicit DataLoaders(const RankGraph& g) : g_(g), known_(g.recorded->cpu_ops.size(), -1) {}

  bool around(std::int32_t op) {
    std::int32_t outer = op;
    for (; outer != kNone && item(known_, outer) < 0; outer = item(g_.parent_of_op, outer)) {
      inward_.push_back(outer);
      if (g_.recorded->names.text(item(g_.recorded->cpu_ops, outer).name).starts_with(kDataLoader)) break;
    }
    const bool inside = outer != kNone && item(known_, outer) != 0;  // not cached: it is a data loader itself
    for (; !inward_.empty(); inward_.pop_back()) item(known_, inward_.back()) = inside ? 1 : 0;
    return inside;
  }

 private:
  const RankGraph& g_;
  std::vector<std::int8_t> known_;    // [CPU operator] 1 or 0; -1: not known yet
  std::vector<std::int32_t> inward_;  // from inner to outer
};

// Cuts one lane into pieces.
class LaneCutter {
 public:
  LaneCutter(const RankGraph& g, const std::vector<CpuTask>& tasks, const OpsOfLane& ops,
             TopLevelOperators& top_level, DataLoaders& loaders)
      : g_(g), tasks_(tasks), ops_(ops), loaders_(loaders) {
    for (const CpuTask& t : tasks) top_.push_back(top_level.of(t.op));
  }

  // `step_ends_here`: the last gap of the lane ends with the step; it counts even if its length is 0.
  void cut(bool step_ends_here) {
    std::unordered_map<std::int32_t, std::vector<std::uint32_t>> tasks_of;
    for (std::uint32_t t = 0; t < tasks_.size(); ++t)
      if (top_[t] != kNone) tasks_of[top_[t]].push_back(t);
    Piece gap;
    std::size_t next_op = 0, next_label = 0;
    std::int32_t last_op = kNone;
    const auto enter = [&] {  // the next top-level operator starts, so the gap before it ends
      const std::int32_t op = ops_.top_level[next_op++];
      gap.cut.op = op;
      gap.cut.after = std::exchange(last_op, op);
      gap.cut.in_data_loader = loaders_.around(op);
      gap.cut.profiler_events = 1;
      for (; next_label < ops_.labels.size() && ops_.labels[next_label] < op; ++next_label)
        ++gap.cut.profiler_events;
      pieces.push_back(std::exchange(gap, {}));
      cut_operator(op, tasks_of[op]);
    };
    for (std::uint32_t t = 0; t < tasks_.size(); ++t) {
      // Enter operators that have ended before the task starts, and the one of the task. Operators without
      // length have no task.
      while (next_op < ops_.top_level.size() &&
             (ops_.top_level[next_op] == top_[t] ||
              (top_[t] == kNone ? end_us(ops_.top_level[next_op]) <= tasks_[t].start_us
                                : ops_.top_level[next_op] < top_[t]))) {
        enter();
      }
      if (top_[t] == kNone && tasks_[t].call == kNone) add(gap, t);
    }
    while (next_op < ops_.top_level.size()) enter();
    if (step_ends_here || !gap.tasks.empty()) {
      gap.cut.profiler_events = static_cast<std::uint32_t>(ops_.labels.size() - next_label);
      pieces.push_back(std::move(gap));
    }
  }

  std::vector<Piece> pieces;
  std::vector<LaunchingOperator> operators;

 private:
  // Times of an operator on the common clock, in microseconds.
  [[nodiscard]] double start_us(std::int32_t op) const {
    return g_.us(g_.recorded->cpu_ops[static_cast<std::size_t>(op)].start);
  }
  [[nodiscard]] double end_us(std::int32_t op) const {
    return g_.us(g_.recorded->cpu_ops[static_cast<std::size_t>(op)].end());
  }
  void add(Piece& piece, std::uint32_t task) const {
    piece.cut.duration_us += tasks_[task].end_us - tasks_[task].start_us;
    piece.tasks.push_back(task);
  }

  // Cuts an operator at its launches: T2, T5 between launches, T3; or one T5 without launches.
  void cut_operator(std::int32_t op, const std::vector<std::uint32_t>& tasks) {
    LaunchingOperator launching{op, {}};
    for (const std::uint32_t t : tasks) {
      const std::int32_t call = tasks_[t].call;
      if (call != kNone && is_launch(g_.calls[static_cast<std::size_t>(call)]))
        launching.launches.push_back(call);
    }
    const std::size_t n = launching.launches.size();
    std::vector<Piece> cut(n + 1);  // before the first launch, between launches, after the last one
    for (std::size_t i = 0; i <= n; ++i) {
      cut[i].cut.op = op;
      cut[i].cut.in_data_loader = loaders_.around(op);
      cut[i].cut.type = n == 0 || (i > 0 && i < n) ? OverheadType::t5
                        : i == 0                   ? OverheadType::t2
                                                   : OverheadType::t3;
    }
    std::size_t launched = 0;
    for (const std::uint32_t t : tasks)
      if (tasks_[t].call == kNone)
        add(cut[launched], t);
      else if (is_launch(g_.calls[static_cast<std::size_t>(tasks_[t].call)]))
        ++launched;
    if (const auto inside = ops_.inside.find(op); inside != ops_.inside.end()) {
      for (const std::int32_t inner : inside->second) {
        const auto behind = std::partition_point(
            launching.launches.begin(), launching.launches.end(), [&](std::int32_t call) {
              return g_.calls[static_cast<std::size_t>(call)].start_us < start_us(inner);
            });
        ++cut[static_cast<std::size_t>(behind - launching.launches.begin())].cut.profiler_events;
      }
    }
    for (Piece& piece : cut) pieces.push_back(std::move(piece));
    operators.push_back(std::move(launching));
  }

  const RankGraph& g_;
  const std::vector<CpuTask>& tasks_;
  const OpsOfLane& ops_;
  DataLoaders& loaders_;
  std::vector<std::int32_t> top_;  // [task]
};

// Sorts the operators of each lane into top-level operators, labels, and operators inside of others.
std::vector<OpsOfLane> ops_of_lanes(const RankGraph& g, const CpuLanes& lanes, TopLevelOperators& top_level) {
  const auto at = [&](double time_us) { return g.origin + Nanoseconds{std::llround(time_us * 1e3)}; };
  std::vector<OpsOfLane> of_lane(lanes.threads.size());
  for (std::size_t lane = 0; lane < lanes.threads.size(); ++lane) {
    OpsOfLane& ops = of_lane[lane];
    for (const std::int32_t index : g.index->ops_in(static_cast<std::size_t>(lanes.threads[lane]),
                                                    at(g.window.start_us), at(g.window.end_us))) {
      const CpuOp& op = g.recorded->cpu_ops[static_cast<std::size_t>(index)];
      if (g.us(op.start) >= g.window.end_us || g.us(op.end()) <= g.window.start_us) continue;
      const std::int32_t top = top_level.of(index);
      if (top == index) {
        ops.top_level.push_back(index);
      } else if (top == kNone) {
        if (op.kind != CpuOp::Kind::step) ops.labels.push_back(index);
      } else {
        ops.inside[top].push_back(index);
      }
    }
  }
  return of_lane;
}

}  // namespace

// First cuts all lanes, then distributes the occurrences of each overhead over the tasks: pieces without
// length count as occurrences but have no task.
HostTimes host_times(const RankGraph& g, const CpuLanes& lanes) {
  TopLevelOperators top_level(g);
  DataLoaders loaders(g);
  const std::vector<OpsOfLane> ops = ops_of_lanes(g, lanes, top_level);
  HostTimes times;
  struct Count {
    double all = 0, with_length = 0;
  };
  std::map<std::tuple<OverheadType, bool, NameId, NameId>, Count> counts;
  const auto name_of = [&](std::int32_t op) {
    return op == kNone ? NameId{} : g.recorded->cpu_ops[static_cast<std::size_t>(op)].name;
  };
  const auto key = [&](const CutPiece& piece) {
    return std::tuple{piece.type, piece.in_data_loader, name_of(piece.op), name_of(piece.after)};
  };
  std::vector<std::vector<Piece>> of_lane;
  for (std::size_t lane = 0; lane < lanes.tasks.size(); ++lane) {
    LaneCutter cutter{g, lanes.tasks[lane], ops[lane], top_level, loaders};
    cutter.cut(lane == 0);
    std::move(cutter.operators.begin(), cutter.operators.end(), std::back_inserter(times.operators));
    for (const Piece& piece : cutter.pieces) {
      Count& count = counts[key(piece.cut)];
      ++count.all;
      if (piece.cut.duration_us > 0) ++count.with_length;
      times.pieces.push_back(piece.cut);
    }
    of_lane.push_back(std::move(cutter.pieces));
  }
  for (std::size_t lane = 0; lane < of_lane.size(); ++lane) {
    std::vector<HostTime>& of_task =
        times.of_task.emplace_back(lanes.tasks[lane].size(), HostTime{OverheadType::t4, kNone, 1});
    for (std::size_t t = 0; t < of_task.size(); ++t)
      of_task[t].in_data_loader = loaders.around(lanes.tasks[lane][t].op);
    for (const Piece& piece : of_lane[lane]) {
      const Count& count = counts[key(piece.cut)];
      for (const std::uint32_t t : piece.tasks) {
        const CpuTask& task = lanes.tasks[lane][t];
        const double share = (task.end_us - task.start_us) / piece.cut.duration_us;
        of_task[t] = {piece.cut.type, piece.cut.op, share * count.all / count.with_length,
                      piece.cut.in_data_loader, piece.cut.after};
      }
    }
  }
  return times;
}

}  // namespace stepcast::detail

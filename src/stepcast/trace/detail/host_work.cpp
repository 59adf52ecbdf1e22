#include "stepcast/trace/detail/host_work.h"

#include <algorithm>
#include <unordered_map>

#include "stepcast/operation/framework_ops.h"

namespace stepcast::detail {
namespace {

class TopLevelOperators {
 public:
  explicit TopLevelOperators(const RankGraph& g) : g_(g), of_op_(g.recorded->cpu_ops.size(), kUnknown) {}

  // The outermost operator around `op` that is no label, or `op` itself; kNone: only labels are open.
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

  bool is_label(std::int32_t op) {
    const CpuOp& recorded = g_.recorded->cpu_ops[static_cast<std::size_t>(op)];
    if (recorded.kind != CpuOp::Kind::op) return true;
    const auto [it, fresh] = labels_.try_emplace(recorded.name.index(), false);
    if (fresh) it->second = role_of(g_.recorded->names.text(recorded.name)) == OpRole::annotation;
    return it->second;
  }

  const RankGraph& g_;
  std::vector<std::int32_t> of_op_;
  std::vector<std::int32_t> inward_;                // operators on the way out, outermost last
  std::unordered_map<std::uint32_t, bool> labels_;  // by name
};

bool is_launch(const Call& call) {
  return call.kind == CallKind::launch || call.kind == CallKind::stream_sync;
}

}  // namespace

std::vector<std::vector<HostTime>> host_times(const RankGraph& g, const CpuLanes& lanes) {
  TopLevelOperators top_level(g);
  struct Launches {
    double first_us = 0, last_us = 0;  // begin of the first, begin of the last
  };
  std::unordered_map<std::int32_t, Launches> launches;  // by top-level operator
  for (const auto& lane : lanes.tasks) {
    for (const CpuTask& t : lane) {
      if (t.call == kNone || !is_launch(g.calls[static_cast<std::size_t>(t.call)])) continue;
      const std::int32_t op = top_level.of(t.op);
      if (op == kNone) continue;
      const auto [it, fresh] = launches.try_emplace(op, Launches{t.start_us, t.start_us});
      if (!fresh) it->second.last_us = std::max(it->second.last_us, t.start_us);
    }
  }
  std::vector<std::vector<HostTime>> times;
  for (const auto& lane : lanes.tasks) {
    std::vector<HostTime>& of_lane = times.emplace_back();
    for (const CpuTask& t : lane) {
      const std::int32_t op = top_level.of(t.op);
      if (t.call != kNone) {
        of_lane.push_back({OverheadType::t4, kNone});
      } else if (op == kNone) {
        of_lane.push_back({OverheadType::t1, kNone});
      } else if (const auto of_op = launches.find(op); of_op == launches.end()) {
        of_lane.push_back({OverheadType::t5, op});
      } else if (t.start_us < of_op->second.first_us) {
        of_lane.push_back({OverheadType::t2, op});
      } else if (t.start_us < of_op->second.last_us) {
        of_lane.push_back({OverheadType::t5, op});
      } else {
        of_lane.push_back({OverheadType::t3, op});
      }
    }
  }
  return times;
}

}  // namespace stepcast::detail

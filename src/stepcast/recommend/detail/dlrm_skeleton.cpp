// Reduces the step of one rank to the tasks with times that depend on the sharding. All other tasks become
// fixed distances (longest paths) between these nodes. A sharding is then evaluated with a few additions per
// rank and path instead of a simulation.
#include "stepcast/recommend/detail/dlrm_skeleton.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace stepcast::detail {
namespace {

constexpr double kNoWay = -std::numeric_limits<double>::infinity();

// [node] The longest path from the end of the node to a moment; kNoWay if there is no path.
using Ways = std::vector<double>;

// Element-wise maximum of `to` and `from` + us.
void lengthen(Ways& to, const Ways& from, double us) {
  to.resize(std::max(to.size(), from.size()), kNoWay);
  for (std::size_t n = 0; n < from.size(); ++n) to[n] = std::max(to[n], from[n] + us);
}

}  // namespace

// The nodes are found in one pass over the tasks in the order of the block.
DlrmSkeleton::DlrmSkeleton(const Block& block, std::span<const double> duration_us,
                           std::span<const double> delay_us, const DlrmTasks& tasks) {
  const auto kind_of = [&](TaskId task) {
    if (task == tasks.lookup) return Kind::lookup;
    if (task == tasks.lookup_backward) return Kind::lookup_backward;
    if (task == tasks.exchange || task == tasks.gradient_exchange) return Kind::vectors;
    if (task == tasks.input_exchange) return Kind::indices;
    if (task == tasks.table_reduction) return Kind::reduction;
    return block.task(task).kind == TaskKind::collective ? Kind::other : Kind::start;
  };
  const auto add_node = [&](Kind kind, double us, const Ways& ways) {
    Node node{.kind = kind, .duration_us = us, .ways = {}};
    // Skip a path that another node covers: if a path over that node is at least as long, the node enforces
    // it.
    const auto is_longest = [&](std::size_t from) {
      return std::ranges::none_of(node.ways, [&](const auto& after) {
        return std::ranges::any_of(nodes_[after.first].ways, [&](const auto& before) {
          return before.first == from && before.second + after.second >= ways[from];
        });
      });
    };
    for (std::size_t from = ways.size(); from-- > 0;)
      if (ways[from] != kNoWay && is_longest(from)) node.ways.emplace_back(from, ways[from]);
    nodes_.push_back(std::move(node));
    Ways own(nodes_.size(), kNoWay);
    own.back() = 0;
    return own;
  };
  // Walks over the tasks in their order and keeps, for every lane and moment, the longest paths from the
  // nodes.
  const Ways start = add_node(Kind::start, 0, {});
  std::vector<Ways> lanes(block.lanes().size(), start), times(2 * std::size_t{block.task_count()});
  Ways end = start;
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const TaskId task{t};
    Ways& lane = lanes[block.lane_of(task).index()];
    Ways& began = times[Moment::start_of(task).code()];
    began = lane;
    for (std::uint32_t e = block.first_edge()[t]; e < block.first_edge()[t + 1]; ++e)
      lengthen(began, times[block.sources()[e]], delay_us[e]);
    Ways& ended = times[Moment::end_of(task).code()];
    if (const Kind kind = kind_of(task); kind != Kind::start) {
      ended = add_node(kind, duration_us[t], began);
    } else {
      lengthen(ended, began, duration_us[t]);
    }
    lane = ended;
    lengthen(end, ended, 0);
  }
  static_cast<void>(add_node(Kind::other, 0, end));
}

// Lookups run per rank. All other nodes are collectives, which end at the same time on all ranks: after the
// last rank has arrived, plus their duration.
double DlrmSkeleton::end_us(std::span<const RankLookups> ranks, const DlrmExchanges& us) {
  const std::size_t n = ranks.size();
  ends_us_.assign(nodes_.size() * n, 0.0);
  for (std::size_t k = 1; k < nodes_.size(); ++k) {
    const Node& node = nodes_[k];
    const std::span<double> own = std::span{ends_us_}.subspan(k * n, n);
    for (const auto& [from, way_us] : node.ways)
      for (std::size_t r = 0; r < n; ++r) own[r] = std::max(own[r], ends_us_[from * n + r] + way_us);
    if (node.kind == Kind::lookup || node.kind == Kind::lookup_backward) {
      for (std::size_t r = 0; r < n; ++r)
        own[r] += node.kind == Kind::lookup ? ranks[r].forward_us : ranks[r].backward_us + us.update;
      continue;
    }
    const double took_us = node.kind == Kind::vectors     ? us.vectors
                           : node.kind == Kind::indices   ? us.indices
                           : node.kind == Kind::reduction ? us.reduction
                                                          : node.duration_us;
    std::ranges::fill(own, *std::ranges::max_element(own) + took_us);
  }
  return ends_us_.back();
}

}  // namespace stepcast::detail

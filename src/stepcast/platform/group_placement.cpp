#include "stepcast/platform/group_placement.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace stepcast {
namespace {

// One group on its nodes: nodes, and the most and fewest ranks per node.
struct GroupShape {
  std::int64_t n_nodes = 0, most = 0, fewest = 0;
  bool rail_aligned = true;
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

// Calls `visit` with the ranks of every node. `ranks` must be ascending.
template <class Visit>
void for_each_node(RankSpan ranks, std::int64_t gpus_per_node, Visit visit) {
  for (std::size_t begin = 0; begin < ranks.size();) {
    const std::int64_t node = ranks[begin] / gpus_per_node;
    std::size_t end = begin;
    while (end < ranks.size() && ranks[end] / gpus_per_node == node) ++end;
    visit(node, ranks.subspan(begin, end - begin));
    begin = end;
  }
}

// Rail-aligned: the local indices on each node are a subset of those on the fullest node.
GroupShape shape_of(RankSpan ranks, std::int64_t gpus_per_node) {
  GroupShape shape;
  RankSpan fullest;
  for_each_node(ranks, gpus_per_node, [&](std::int64_t, RankSpan here) {
    const auto n = static_cast<std::int64_t>(here.size());
    shape.fewest = shape.n_nodes == 0 ? n : std::min(shape.fewest, n);
    if (n > shape.most) fullest = here;
    shape.most = std::max(shape.most, n);
    ++shape.n_nodes;
  });
  for_each_node(ranks, gpus_per_node, [&](std::int64_t, RankSpan here) {
    shape.rail_aligned =
        shape.rail_aligned && std::includes(fullest.begin(), fullest.end(), here.begin(), here.end(),
                                            [&](std::uint32_t a, std::uint32_t b) {
                                              return a % gpus_per_node < b % gpus_per_node;
                                            });
  });
  return shape;
}

// The groups with ascending ranks; copies only those that need sorting.
class SortedGroups {
 public:
  explicit SortedGroups(std::span<const RankSpan> groups) : groups_(groups.begin(), groups.end()) {
    for (RankSpan& group : groups_) group = in_order(group);
  }
  RankSpan in_order(RankSpan ranks) {
    if (std::ranges::is_sorted(ranks)) return ranks;
    std::vector<std::uint32_t>& copy = copies_.emplace_back(ranks.begin(), ranks.end());
    std::ranges::sort(copy);
    return copy;
  }
  [[nodiscard]] std::span<const RankSpan> all() const { return groups_; }

 private:
  std::vector<RankSpan> groups_;
  std::vector<std::vector<std::uint32_t>> copies_;
};

// Placement of one group of a kind. `shapes` belong to `groups`.
GroupPlacement placement_of(const GroupShape& shape, std::size_t n_ranks, std::span<const RankSpan> groups,
                            std::span<const GroupShape> shapes, std::int64_t gpus_per_node) {
  GroupPlacement result;
  result.n_ranks = static_cast<std::int64_t>(n_ranks);
  result.n_nodes = shape.n_nodes;
  result.ranks_per_node = shape.most;
  result.min_ranks_per_node = shape.fewest;
  result.rail_aligned = shape.rail_aligned;
  result.uniform = std::ranges::all_of(shapes, [&](const GroupShape& s) { return s == shape; });
  std::vector<std::int64_t> nodes;  // one entry per rank of a counting group
  for (std::size_t g = 0; g < groups.size(); ++g) {
    // Groups inside one node do not share the network with a group that spans nodes.
    if (shape.n_nodes > 1 && shapes[g].n_nodes == 1) continue;
    for (const std::uint32_t rank : groups[g]) nodes.push_back(rank / gpus_per_node);
  }
  std::ranges::sort(nodes);
  for (std::size_t begin = 0, end = 0; begin < nodes.size(); begin = end) {
    while (end < nodes.size() && nodes[end] == nodes[begin]) ++end;
    const auto n_ranks_here = static_cast<std::int64_t>(end - begin);
    result.groups_per_node = std::max(result.groups_per_node, (n_ranks_here + shape.most - 1) / shape.most);
  }
  return result;
}

// The shape of each group, in the same order.
std::vector<GroupShape> shapes_of(std::span<const RankSpan> groups, std::int64_t gpus_per_node) {
  std::vector<GroupShape> shapes;
  shapes.reserve(groups.size());
  for (const RankSpan group : groups) shapes.push_back(shape_of(group, gpus_per_node));
  return shapes;
}

}  // namespace

GroupPlacement place_ranks(RankSpan ranks, std::int64_t gpus_per_node, std::span<const RankSpan> same_kind) {
  if (ranks.empty()) return {};
  SortedGroups sorted{same_kind};
  const RankSpan group = sorted.in_order(ranks);
  return placement_of(shape_of(group, gpus_per_node), group.size(), sorted.all(),
                      shapes_of(sorted.all(), gpus_per_node), gpus_per_node);
}

GroupPlacement place_groups(std::span<const RankSpan> groups, std::int64_t gpus_per_node) {
  if (groups.empty()) return {};
  const SortedGroups sorted{groups};
  const std::vector<GroupShape> shapes = shapes_of(sorted.all(), gpus_per_node);
  // The slowest group decides: the one on the most nodes, and among those the one with the fewest ranks on a
  // node.
  const auto worst = std::ranges::max_element(shapes, [](const GroupShape& a, const GroupShape& b) {
    return std::pair{a.n_nodes, -a.fewest} < std::pair{b.n_nodes, -b.fewest};
  });
  GroupPlacement result =
      placement_of(*worst, sorted.all()[static_cast<std::size_t>(worst - shapes.begin())].size(),
                   sorted.all(), shapes, gpus_per_node);
  result.rail_aligned = std::ranges::all_of(shapes, &GroupShape::rail_aligned);
  return result;
}

}  // namespace stepcast

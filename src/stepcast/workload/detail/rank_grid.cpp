#include "stepcast/workload/detail/rank_grid.h"

#include <algorithm>
#include <utility>

namespace stepcast::detail {
namespace {

constexpr std::int64_t kNoGroup = -1;

// One group on its nodes.
struct GroupShape {
  std::int64_t n_nodes = 0, most = 0, fewest = 0;
  bool rail_aligned = true;
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

// `ranks` in ascending order.
GroupShape shape_of(const std::vector<std::int64_t>& ranks, std::int64_t gpus_per_node) {
  GroupShape shape;
  std::size_t begin = 0;
  std::size_t first_end = 0;
  while (begin < ranks.size()) {
    const std::int64_t node = ranks[begin] / gpus_per_node;
    std::size_t end = begin;
    while (end < ranks.size() && ranks[end] / gpus_per_node == node) ++end;
    const auto n = static_cast<std::int64_t>(end - begin);
    if (shape.n_nodes == 0) first_end = end;
    shape.fewest = shape.n_nodes == 0 ? n : std::min(shape.fewest, n);
    shape.most = std::max(shape.most, n);
    ++shape.n_nodes;
    if (end - begin != first_end) {
      shape.rail_aligned = false;
    } else {
      for (std::size_t i = 0; i < first_end; ++i) {
        if (ranks[begin + i] % gpus_per_node != ranks[i] % gpus_per_node) shape.rail_aligned = false;
      }
    }
    begin = end;
  }
  return shape;
}

}  // namespace

RankGrid::RankGrid(std::vector<GridAxis> axes, std::int64_t gpus_per_node)
    : axes_(std::move(axes)), gpus_per_node_(gpus_per_node) {
  std::int64_t left = gpus_per_node;  // places of a node that the axes so far leave
  for (const GridAxis& axis : axes_) {
    n_ranks_ *= axis.size;
    const std::int64_t here = std::min(left, axis.size);
    on_node_.push_back(here);
    if (left % here != 0 || axis.size % here != 0) nodes_fit_ = false;
    left /= here;
  }
}

std::int64_t RankGrid::stride(Axis axis) const {
  std::int64_t stride = 1;
  for (const GridAxis& other : axes_) {
    if (other.axis == axis) break;
    stride *= other.size;
  }
  return stride;
}

GroupPlacement RankGrid::place_group(const std::vector<bool>& mask) const {
  if (!nodes_fit_) return enumerate(mask);
  GroupPlacement group;
  std::int64_t others_on_node = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (mask[i]) {
      group.n_ranks *= axes_[i].size;
      group.ranks_per_node *= on_node_[i];
    } else {
      others_on_node *= on_node_[i];
    }
  }
  group.n_nodes = group.n_ranks / group.ranks_per_node;
  group.min_ranks_per_node = group.ranks_per_node;
  group.groups_per_node = others_on_node;
  return group;
}

GroupPlacement RankGrid::enumerate(const std::vector<bool>& mask) const {
  // A group is named by its rank that has place 0 along every axis that varies.
  std::vector<std::int64_t> group_of_rank(static_cast<std::size_t>(n_ranks_));
  std::int64_t ranks_per_group = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (mask[i]) ranks_per_group *= axes_[i].size;
  }
  for (std::int64_t rank = 0; rank < n_ranks_; ++rank) {
    std::int64_t name = rank, stride = 1;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      if (mask[i]) name -= rank / stride % axes_[i].size * stride;
      stride *= axes_[i].size;
    }
    group_of_rank[static_cast<std::size_t>(rank)] = name;
  }
  return summarize(group_of_rank, ranks_per_group);
}

GroupPlacement RankGrid::pipeline_pair(std::int64_t from, std::int64_t to) const {
  GroupPlacement pair;
  std::int64_t size = 1, on_node = 1, others_on_node = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].axis == Axis::pipeline) {
      size = axes_[i].size;
      on_node = on_node_[i];
    } else {
      others_on_node *= on_node_[i];
    }
  }
  if (size == 1 || from == to) return pair;
  if (nodes_fit_) {
    const bool crosses = from / on_node != to / on_node;
    pair.n_ranks = 2;
    pair.n_nodes = crosses ? 2 : 1;
    pair.ranks_per_node = pair.min_ranks_per_node = crosses ? 1 : 2;
    pair.groups_per_node = others_on_node;
    pair.rail_aligned = !crosses || from % on_node == to % on_node;
    return pair;
  }
  const std::int64_t step = stride(Axis::pipeline);
  std::vector<std::int64_t> group_of_rank(static_cast<std::size_t>(n_ranks_), kNoGroup);
  for (std::int64_t rank = 0; rank < n_ranks_; ++rank) {
    if (rank / step % size != from) continue;
    const std::int64_t other = rank + (to - from) * step;
    group_of_rank[static_cast<std::size_t>(rank)] = rank;
    group_of_rank[static_cast<std::size_t>(other)] = rank;
  }
  return summarize(group_of_rank, 2);
}

GroupPlacement RankGrid::summarize(const std::vector<std::int64_t>& group_of_rank,
                                   std::int64_t ranks_per_group) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> members;  // group, rank
  for (std::size_t rank = 0; rank < group_of_rank.size(); ++rank) {
    if (group_of_rank[rank] != kNoGroup)
      members.emplace_back(group_of_rank[rank], static_cast<std::int64_t>(rank));
  }
  std::sort(members.begin(), members.end());
  std::vector<GroupShape> shapes;
  std::vector<std::int64_t> ranks;
  const auto group_size = static_cast<std::size_t>(ranks_per_group);
  for (std::size_t i = 0; i + group_size <= members.size(); i += group_size) {
    ranks.clear();
    for (std::size_t j = 0; j < group_size; ++j) ranks.push_back(members[i + j].second);
    shapes.push_back(shape_of(ranks, gpus_per_node_));
  }
  GroupPlacement result;
  result.n_ranks = ranks_per_group;
  if (shapes.empty()) return result;
  const auto worst =
      std::max_element(shapes.begin(), shapes.end(), [](const GroupShape& a, const GroupShape& b) {
        return std::pair{a.n_nodes, -a.fewest} < std::pair{b.n_nodes, -b.fewest};
      });
  result.n_nodes = worst->n_nodes;
  result.ranks_per_node = worst->most;
  result.min_ranks_per_node = worst->fewest;
  result.uniform =
      std::all_of(shapes.begin(), shapes.end(), [&](const GroupShape& s) { return s == *worst; });
  result.rail_aligned =
      std::all_of(shapes.begin(), shapes.end(), [](const GroupShape& s) { return s.rail_aligned; });

  const std::int64_t n_nodes = (n_ranks_ + gpus_per_node_ - 1) / gpus_per_node_;
  std::vector<std::int64_t> groups_on_node(static_cast<std::size_t>(n_nodes), 0);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (worst->n_nodes > 1 && shapes[i].n_nodes == 1) continue;
    std::int64_t last_node = -1;
    for (std::size_t j = i * group_size; j < (i + 1) * group_size; ++j) {
      const std::int64_t node = members[j].second / gpus_per_node_;
      if (node != last_node) ++groups_on_node[static_cast<std::size_t>(node)];
      last_node = node;
    }
  }
  result.groups_per_node = *std::max_element(groups_on_node.begin(), groups_on_node.end());
  return result;
}

}  // namespace stepcast::detail

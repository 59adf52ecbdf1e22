#include "stepcast/workload/detail/rank_grid.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/workload/detail/divisors.h"

namespace stepcast::detail {

namespace {

constexpr std::int64_t kNoGroup = -1;

struct AxisName {
  std::string_view name;
  Axis axis;
};
constexpr std::array<AxisName, 5> kAxisNames{{{"tp", Axis::tensor},
                                              {"cp", Axis::context},
                                              {"ep", Axis::expert},
                                              {"dp", Axis::data},
                                              {"pp", Axis::pipeline}}};

std::int64_t degree(const Layout& layout, Axis axis) {
  switch (axis) {
    case Axis::tensor: return layout.degrees.tensor;
    case Axis::context: return layout.degrees.context;
    case Axis::expert: return layout.degrees.expert;
    case Axis::data: return layout.degrees.data;
    case Axis::pipeline: return layout.degrees.pipeline;
  }
  return 1;
}

}  // namespace

RankGrid::RankGrid(std::vector<GridAxis> axes, std::int64_t gpus_per_node)
    : axes_(std::move(axes)), gpus_per_node_(gpus_per_node) {
  on_node_.reserve(axes_.size());
  for (const GridAxis& axis : axes_) n_ranks_ *= axis.size;
  // Places of a node that the axes so far leave. A node that has room for all ranks, as a slice of a torus, cuts nothing.
  std::int64_t left = std::min(gpus_per_node, n_ranks_);
  for (const GridAxis& axis : axes_) {
    // An axis without ranks: the grids of a layout then differ in size, which place() says.
    const std::int64_t here = std::max<std::int64_t>(1, std::min(left, axis.size));
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
  for (std::size_t i = 0; i < axes_.size(); ++i)
    if (mask[i]) ranks_per_group *= axes_[i].size;
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
  std::vector<std::pair<std::int64_t, std::uint32_t>> members;  // group, rank
  for (std::size_t rank = 0; rank < group_of_rank.size(); ++rank)
    if (group_of_rank[rank] != kNoGroup)
      members.emplace_back(group_of_rank[rank], static_cast<std::uint32_t>(rank));
  std::ranges::sort(members);
  std::vector<std::uint32_t> ranks;
  ranks.reserve(members.size());
  for (const auto& [group, rank] : members) ranks.push_back(rank);
  const auto group_size = static_cast<std::size_t>(ranks_per_group);
  std::vector<RankSpan> groups;
  for (std::size_t i = 0; i + group_size <= ranks.size(); i += group_size)
    groups.push_back(RankSpan{ranks}.subspan(i, group_size));
  return place_groups(groups, gpus_per_node_);
}

Result<std::vector<Axis>> parse_rank_order(const Layout& layout) {
  const auto wrong = [&] {
    return Error::at("", "rank_order")
        .found(fmt::format("`{}`", layout.rank_order))
        .expected("tp, cp, ep, dp and pp in any order, joined by '-'");
  };
  std::vector<Axis> order;
  order.reserve(std::size(kAxisNames));
  std::string_view rest = layout.rank_order;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('-'), rest.size());
    const std::string_view word = rest.substr(0, end);
    const auto* named = std::ranges::find(kAxisNames, word, &AxisName::name);
    if (named == kAxisNames.end() || std::ranges::find(order, named->axis) != order.end()) return wrong();
    order.push_back(named->axis);
    if (end + 1 == rest.size()) return wrong();  // ends with '-'
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const AxisName& a : kAxisNames) {
    if (std::ranges::find(order, a.axis) != order.end()) continue;
    if (degree(layout, a.axis) > 1) return wrong();
    order.push_back(a.axis);
  }
  return order;
}

Result<std::vector<GridAxis>> dense_axes(const Layout& layout, const std::vector<Axis>& order) {
  std::vector<GridAxis> axes;
  axes.reserve(order.size() + 1);  // context and data may be cut in two; experts have no axis
  std::int64_t left = layout.shard_group();
  for (const Axis axis : order) {
    if (axis == Axis::expert) continue;
    const std::int64_t size = degree(layout, axis);
    if (axis != Axis::context && axis != Axis::data) {
      axes.push_back({axis, size, false});
      continue;
    }
    const std::int64_t inside = std::min(left, size);
    if (left % inside != 0 || size % inside != 0) {
      return Error::at(
                 "", "shard_group_size",
                 fmt::format("groups of {} do not fit context_parallel {} and data_parallel {} in the rank "
                             "order {}",
                             layout.shard_group(), layout.degrees.context, layout.degrees.data,
                             layout.rank_order))
          .advice(fmt::format("nearest that work: {}", detail::nearest_divisors(size, inside)));
    }
    axes.push_back({axis, inside, true});
    if (inside < size) axes.push_back({axis, size / inside, false});
    left /= inside;
  }
  return axes;
}

std::vector<GridAxis> expert_axes(const Layout& layout, const std::vector<Axis>& order) {
  std::vector<GridAxis> axes;
  axes.reserve(order.size());
  for (const Axis axis : order) {
    switch (axis) {
      case Axis::tensor: axes.push_back({axis, layout.expert_tensor_degree(), false}); break;
      case Axis::expert: axes.push_back({axis, layout.degrees.expert, false}); break;
      case Axis::data: axes.push_back({axis, layout.expert_data_parallel(), false}); break;
      case Axis::pipeline: axes.push_back({axis, layout.degrees.pipeline, false}); break;
      case Axis::context: break;
    }
  }
  return axes;
}

}  // namespace stepcast::detail

#include "stepcast/workload/detail/rank_grid.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/workload/detail/divisors.h"

namespace stepcast::detail {

namespace {

constexpr std::int64_t kNoGroup = -1;  // marks a rank outside of all groups

struct AxisName {
  std::string_view name;
  Axis axis;
};
constexpr std::array<AxisName, 5> kAxisNames{{{"tp", Axis::tensor},
                                              {"cp", Axis::context},
                                              {"ep", Axis::expert},
                                              {"dp", Axis::data},
                                              {"pp", Axis::pipeline}}};

// The degree of a layout along an axis.
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
  // Places of a node that the previous axes leave. A node with room for all ranks, such as a slice of a
  // torus, divides nothing.
  std::int64_t left = std::min(gpus_per_node, n_ranks_);
  for (const GridAxis& axis : axes_) {
    // An axis without ranks: the two grids of a layout then differ in size, which place() reports.
    const std::int64_t here = std::max<std::int64_t>(1, std::min(left, axis.size));
    on_node_.push_back(here);
    if (left % here != 0 || axis.size % here != 0) nodes_fit_ = false;
    left /= here;
  }
  if (nodes_fit_) return;
  for (const GridAxis& axis : axes_) {
    const std::int64_t missing = gpus_per_node / std::gcd(period_, gpus_per_node);  // to whole nodes
    in_period_.push_back(axis.size % missing == 0 ? missing : axis.size);
    period_ *= in_period_.back();
    if (axis.axis == Axis::pipeline) stages_in_period_ = in_period_.back();
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
  if (!nodes_fit_) return enumerate_once(mask);
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

GroupPlacement RankGrid::enumerate_once(std::vector<bool> mask) const {
  bool is_alone = true, is_world = true;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    mask[i] = mask[i] && axes_[i].size > 1;
    is_alone = is_alone && !mask[i];
    is_world = is_world && (mask[i] || axes_[i].size == 1);
  }
  const std::int64_t n_nodes = (n_ranks_ + gpus_per_node_ - 1) / gpus_per_node_;
  const std::int64_t fullest = std::min(gpus_per_node_, n_ranks_);
  if (is_alone) return {.groups_per_node = fullest};
  if (is_world) {
    return {.n_ranks = n_ranks_,
            .n_nodes = n_nodes,
            .ranks_per_node = fullest,
            .min_ranks_per_node = n_ranks_ - (n_nodes - 1) * gpus_per_node_};
  }
  auto known = std::ranges::find(enumerated_, mask, &PlacedGroups::mask);
  if (known == enumerated_.end()) known = enumerated_.insert(known, {mask, enumerate(mask)});
  return known->placement;
}

GroupPlacement RankGrid::enumerate(const std::vector<bool>& mask) const {
  std::int64_t ranks_per_group = 1, periods_per_group = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (!mask[i]) continue;
    ranks_per_group *= in_period_[i];
    periods_per_group *= axes_[i].size / in_period_[i];
  }
  // A group of several periods has the same placement in each; two periods suffice to see that it spans
  // several nodes.
  const std::int64_t looked_at = std::min<std::int64_t>(2, periods_per_group);
  // The name of a group is its rank with place 0 along every varying axis.
  std::vector<std::int64_t> group_of_rank(static_cast<std::size_t>(period_ * looked_at));
  for (std::int64_t rank = 0; rank < period_ * looked_at; ++rank) {
    std::int64_t name = rank % period_, stride = 1;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      if (mask[i]) name -= rank / stride % in_period_[i] * stride;
      stride *= in_period_[i];
    }
    group_of_rank[static_cast<std::size_t>(rank)] = name;
  }
  GroupPlacement group = summarize(group_of_rank, ranks_per_group * looked_at);
  group.n_ranks = group.n_ranks / looked_at * periods_per_group;
  group.n_nodes = group.n_nodes / looked_at * periods_per_group;
  return group;
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
  // Stages of different periods have the same placement as those of two neighbouring periods.
  const bool crosses = from / stages_in_period_ != to / stages_in_period_;
  from %= stages_in_period_;
  to = to % stages_in_period_ + (crosses ? stages_in_period_ : 0);
  const auto known = std::ranges::find_if(
      pairs_, [&](const PlacedPair& placed) { return placed.from == from && placed.to == to; });
  if (known != pairs_.end()) return known->placement;
  const std::int64_t step = std::min(stride(Axis::pipeline), period_);
  std::vector<std::int64_t> group_of_rank(static_cast<std::size_t>(crosses ? 2 * period_ : period_),
                                          kNoGroup);
  for (std::int64_t rank = 0; rank < period_; ++rank) {
    if (rank / step % stages_in_period_ != from) continue;
    const std::int64_t other = rank + (to - from) * step;
    group_of_rank[static_cast<std::size_t>(rank)] = rank;
    group_of_rank[static_cast<std::size_t>(other)] = rank;
  }
  pairs_.push_back({from, to, summarize(group_of_rank, 2)});
  return pairs_.back().placement;
}

GroupPlacement RankGrid::summarize(const std::vector<std::int64_t>& group_of_rank,
                                   std::int64_t ranks_per_group) const {
  // Counting sort of ranks by group, ascending within each.
  std::vector<std::size_t> next(group_of_rank.size() + 1, 0);
  for (const std::int64_t group : group_of_rank)
    if (group != kNoGroup) ++next[static_cast<std::size_t>(group) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::uint32_t> ranks(next.back());
  for (std::size_t rank = 0; rank < group_of_rank.size(); ++rank) {
    const std::int64_t group = group_of_rank[rank];
    if (group != kNoGroup) ranks[next[static_cast<std::size_t>(group)]++] = static_cast<std::uint32_t>(rank);
  }
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
    if (end + 1 == rest.size()) return wrong();  // trailing '-'
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
  axes.reserve(order.size() + 1);  // context and data may be in two parts; experts have no axis
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

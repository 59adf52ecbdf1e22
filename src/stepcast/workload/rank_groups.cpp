#include "stepcast/workload/rank_groups.h"

#include <algorithm>

#include <fmt/format.h>

#include "stepcast/workload/detail/rank_grid.h"

namespace stepcast {

using detail::Axis;
using detail::GridAxis;

Result<RankGroups> RankGroups::of(const Layout& layout) {
  constexpr std::int64_t kMost = 65'536;
  if (layout.world_size() > kMost) {
    return Error{"too many ranks to be named one by one"}
        .found(fmt::format("{}", layout.world_size()))
        .expected(fmt::format("at most {}", kMost));
  }
  STEPCAST_ASSIGN(const std::vector<Axis> order, detail::parse_rank_order(layout));
  STEPCAST_ASSIGN(const std::vector<GridAxis> dense, detail::dense_axes(layout, order));
  RankGroups groups;
  const auto digits = [](const std::vector<GridAxis>& axes) {
    std::vector<Digit> out;
    std::uint32_t stride = 1;
    for (const GridAxis& axis : axes) {
      out.push_back({.stride = stride,
                     .size = static_cast<std::uint32_t>(axis.size),
                     .tensor = axis.axis == Axis::tensor,
                     .context = axis.axis == Axis::context,
                     .data = detail::carries_data(axis),
                     .shard = axis.is_shard,
                     .expert = axis.axis == Axis::expert,
                     .pipeline = axis.axis == Axis::pipeline});
      stride *= out.back().size;
    }
    return out;
  };
  groups.dense_ = digits(dense);
  groups.experts_ = digits(detail::expert_axes(layout, order));
  for (const Digit& digit : groups.dense_) groups.n_ranks_ *= digit.size;
  return groups;
}

template <class Varies>
std::vector<std::uint32_t> RankGroups::differing(const std::vector<Digit>& digits, std::uint32_t rank,
                                                 Varies varies) const {
  std::vector<std::uint32_t> ranks{rank};
  for (const Digit& digit : digits) {
    if (!varies(digit)) continue;
    std::vector<std::uint32_t> more;
    for (const std::uint32_t r : ranks) {
      const std::uint32_t first = r - digit.of(r) * digit.stride;
      for (std::uint32_t place = 0; place < digit.size; ++place) more.push_back(first + place * digit.stride);
    }
    ranks = std::move(more);
  }
  std::ranges::sort(ranks);
  return ranks;
}

std::vector<std::uint32_t> RankGroups::stage(std::uint32_t number) const {
  std::vector<std::uint32_t> ranks;
  const auto pipeline = std::ranges::find_if(dense_, &Digit::pipeline);
  for (std::uint32_t rank = 0; rank < n_ranks_; ++rank)
    if (pipeline == dense_.end() || pipeline->of(rank) == number) ranks.push_back(rank);
  return ranks;
}

std::vector<std::uint32_t> RankGroups::with(GroupKind kind, std::uint32_t rank) const {
  switch (kind) {
    case GroupKind::tensor: return differing(dense_, rank, [](const Digit& d) { return d.tensor; });
    case GroupKind::context: return differing(dense_, rank, [](const Digit& d) { return d.context; });
    case GroupKind::data: return differing(dense_, rank, [](const Digit& d) { return d.data; });
    case GroupKind::shard: return differing(dense_, rank, [](const Digit& d) { return d.data && d.shard; });
    case GroupKind::replicate:
      return differing(dense_, rank, [](const Digit& d) { return d.data && !d.shard; });
    case GroupKind::expert: return differing(experts_, rank, [](const Digit& d) { return d.expert; });
    case GroupKind::expert_data: return differing(experts_, rank, [](const Digit& d) { return d.data; });
    case GroupKind::pipeline: break;
    case GroupKind::embedding: {
      const std::vector<std::uint32_t> chain = with(GroupKind::pipeline, rank);
      return chain.size() > 1 ? std::vector{chain.front(), chain.back()} : chain;
    }
  }
  return differing(dense_, rank, [](const Digit& d) { return d.pipeline; });
}

}  // namespace stepcast

// Ranks as a grid: the number of a rank is a mixed-radix number; its digits are the places of the rank along
// the axes.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/placement.h"

namespace stepcast::detail {

enum class Axis : std::uint8_t { tensor, context, data, pipeline, expert };

// One axis; the same kind may occur twice, inside and outside of shard groups.
struct GridAxis {
  Axis axis = Axis::tensor;
  std::int64_t size = 1;
  bool is_shard = false;  // for a data or context axis in two parts: this part is inside shard groups
};

// Placement of groups on nodes. Fast where nodes divide the grid along its axes, else by enumeration. Not
// thread-safe: caches placements.
class RankGrid {
 public:
  // Axes from the fastest to the slowest. All sizes are at least 1.
  RankGrid(std::vector<GridAxis> axes, std::int64_t gpus_per_node);

  // Placement of the groups of ranks that differ only along the axes with varies(axis).
  template <class Varies>
  [[nodiscard]] GroupPlacement group(Varies varies) const {
    std::vector<bool> mask;
    for (const GridAxis& axis : axes_) mask.push_back(varies(axis));
    return place_group(mask);
  }
  // Placement of pairs of ranks at places `from` and `to` of the pipeline axis.
  [[nodiscard]] GroupPlacement pipeline_pair(std::int64_t from, std::int64_t to) const;

  [[nodiscard]] std::int64_t n_ranks() const { return n_ranks_; }
  // Distance between neighbouring ranks along `axis`.
  [[nodiscard]] std::int64_t stride(Axis axis) const;

  // Limit of the enumeration: with more ranks before the pattern on nodes repeats, can_place() is false.
  static constexpr std::int64_t kMostEnumerated = std::int64_t{1} << 20;
  // Whether nodes divide the grid along its axes, so that no group is on a node only in part.
  [[nodiscard]] bool nodes_fit() const { return nodes_fit_; }
  [[nodiscard]] bool can_place() const { return nodes_fit_ || period_ <= kMostEnumerated; }

 private:
  // By formula if nodes_fit(), else enumerated.
  [[nodiscard]] GroupPlacement place_group(const std::vector<bool>& mask) const;
  // enumerate() with special cases and a cache.
  [[nodiscard]] GroupPlacement enumerate_once(std::vector<bool> mask) const;
  // By listing the ranks of one or two periods.
  [[nodiscard]] GroupPlacement enumerate(const std::vector<bool>& mask) const;
  // Placement of listed groups; kNoGroup marks ranks outside of all groups.
  [[nodiscard]] GroupPlacement summarize(const std::vector<std::int64_t>& group_of_rank,
                                         std::int64_t ranks_per_group) const;

  std::vector<GridAxis> axes_;
  std::int64_t gpus_per_node_;
  std::int64_t n_ranks_ = 1;
  // Places along each axis within one node, if nodes divide the grid along its axes (the usual case).
  std::vector<std::int64_t> on_node_;
  bool nodes_fit_ = true;
  // Otherwise: the smallest numbers of places along each axis that together fill whole nodes (the period),
  // and their number of ranks. Ranks one period away from each other have the same place on their nodes.
  // Without such numbers: the whole grid.
  std::vector<std::int64_t> in_period_;
  std::int64_t period_ = 1, stages_in_period_ = 1;
  // Cached enumerations. For pairs of stages, the first stage is in the first period.
  struct PlacedGroups {
    std::vector<bool> mask;
    GroupPlacement placement;
  };
  struct PlacedPair {
    std::int64_t from = 0, to = 0;
    GroupPlacement placement;
  };
  mutable std::vector<PlacedGroups> enumerated_;
  mutable std::vector<PlacedPair> pairs_;
};

// The five axes in the rank order of a layout, from the fastest to the slowest; omitted axes have one rank
// and come last. Error: an unknown or repeated name, or an omitted axis with several ranks.
[[nodiscard]] Result<std::vector<Axis>> parse_rank_order(const Layout& layout);

// Axes of the model without experts. Context and data axes are divided in two where shard groups are smaller
// than both together. Error: shard groups that do not fit the order.
[[nodiscard]] Result<std::vector<GridAxis>> dense_axes(const Layout& layout, const std::vector<Axis>& order);
// Axes of the experts, in the same order.
[[nodiscard]] std::vector<GridAxis> expert_axes(const Layout& layout, const std::vector<Axis>& order);

// Whether ranks along an axis have the same weights.
[[nodiscard]] inline bool carries_data(const GridAxis& a) {
  return a.axis == Axis::data || a.axis == Axis::context;
}

}  // namespace stepcast::detail

// Ranks as a grid: a rank's number is a mixed-radix number whose digits are its places along the axes.
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/placement.h"

namespace stepcast::detail {

enum class Axis : std::uint8_t { tensor, context, data, pipeline, expert };

struct GridAxis {
  Axis axis = Axis::tensor;
  std::int64_t size = 1;
  bool is_shard = false;  // of a data or context axis that is cut in two: this part lies inside shard groups
};

class RankGrid {
 public:
  // Axes from the fastest to the slowest. All sizes at least 1.
  RankGrid(std::vector<GridAxis> axes, std::int64_t gpus_per_node);

  // Groups are ranks that differ along the axes for which `varies(axis)` is true.
  template <class Varies>
  [[nodiscard]] GroupPlacement group(Varies varies) const {
    std::vector<bool> mask;
    for (const GridAxis& axis : axes_) mask.push_back(varies(axis));
    return place_group(mask);
  }
  // Pairs of ranks at places `from` and `to` of the pipeline axis.
  [[nodiscard]] GroupPlacement pipeline_pair(std::int64_t from, std::int64_t to) const;

  [[nodiscard]] std::int64_t n_ranks() const { return n_ranks_; }
  // Distance of ranks that are neighbours along `axis`.
  [[nodiscard]] std::int64_t stride(Axis axis) const;

  // Of more ranks than these before their places on nodes repeat, nodes must cut the grid along its axes.
  static constexpr std::int64_t kMostEnumerated = std::int64_t{1} << 20;
  // Nodes cut the grid along its axes, so that no group lies on a node in part.
  [[nodiscard]] bool nodes_fit() const { return nodes_fit_; }
  [[nodiscard]] bool can_place() const { return nodes_fit_ || period_ <= kMostEnumerated; }

 private:
  [[nodiscard]] GroupPlacement place_group(const std::vector<bool>& mask) const;
  [[nodiscard]] GroupPlacement enumerate_once(std::vector<bool> mask) const;
  [[nodiscard]] GroupPlacement enumerate(const std::vector<bool>& mask) const;
  [[nodiscard]] GroupPlacement summarize(const std::vector<std::int64_t>& group_of_rank,
                                         std::int64_t ranks_per_group) const;

  std::vector<GridAxis> axes_;
  std::int64_t gpus_per_node_;
  std::int64_t n_ranks_ = 1;
  // Places along each axis that lie on one node, if nodes cut the grid along its axes (the usual case).
  std::vector<std::int64_t> on_node_;
  bool nodes_fit_ = true;
  // Otherwise: places along each axis that fill whole nodes together, and their number. Ranks so far apart have the same
  // place of a node. Without such a number: the whole grid.
  std::vector<std::int64_t> in_period_;
  std::int64_t period_ = 1, stages_in_period_ = 1;
  // What was enumerated. Of pairs of stages the first is in the first period.
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

// The axes of a layout's ranks, from the fastest to the slowest: of the model without its experts, and of the experts.

// All five axes as the layout's rank order names them; those that it leaves out have one rank.
[[nodiscard]] Result<std::vector<Axis>> parse_rank_order(const Layout& layout);

// Context and data axes are cut in two where shard groups are smaller than both together.
[[nodiscard]] Result<std::vector<GridAxis>> dense_axes(const Layout& layout, const std::vector<Axis>& order);
[[nodiscard]] std::vector<GridAxis> expert_axes(const Layout& layout, const std::vector<Axis>& order);

[[nodiscard]] inline bool carries_data(const GridAxis& a) {
  return a.axis == Axis::data || a.axis == Axis::context;
}

}  // namespace stepcast::detail

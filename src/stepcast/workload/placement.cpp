#include "stepcast/workload/placement.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stepcast/workload/detail/rank_grid.h"

namespace stepcast {
namespace {

using detail::Axis;
using detail::carries_data;
using detail::GridAxis;
using detail::RankGrid;

// Selects the axes of one kind.
auto along(Axis wanted) {
  return [wanted](const GridAxis& a) { return a.axis == wanted; };
}

// The error for groups that neither fit nodes nor can be enumerated.
Error too_many_ranks(const RankGrid& grid, std::int64_t gpus_per_node) {
  return Error{fmt::format("{} ranks, and nodes of {} GPUs that split the groups of the layout",
                           grid.n_ranks(), gpus_per_node)}
      .expected(fmt::format("degrees that fit a node, or at most {} ranks", RankGrid::kMostEnumerated));
}

// All groups of the dense grid and the expert grid.
Placement placement_of(std::int64_t pp, std::int64_t gpus_per_node, const RankGrid& dense,
                       const RankGrid& experts) {
  Placement placement;
  placement.gpus_per_node = gpus_per_node;
  placement.n_nodes = (dense.n_ranks() + gpus_per_node - 1) / gpus_per_node;
  placement.tensor = dense.group(along(Axis::tensor));
  placement.context = dense.group(along(Axis::context));
  placement.data = dense.group(along(Axis::data));
  placement.data_context = dense.group(carries_data);
  placement.pipeline = dense.group(along(Axis::pipeline));
  placement.model =
      dense.group([](const GridAxis& a) { return a.axis == Axis::tensor || a.axis == Axis::pipeline; });
  placement.shard = dense.group([](const GridAxis& a) { return carries_data(a) && a.is_shard; });
  placement.replicate = dense.group([](const GridAxis& a) { return carries_data(a) && !a.is_shard; });
  placement.world = dense.group([](const GridAxis&) { return true; });
  placement.expert = experts.group(along(Axis::expert));
  placement.expert_tensor = experts.group(along(Axis::tensor));
  placement.expert_data = experts.group(along(Axis::data));

  placement.embedding = dense.pipeline_pair(0, pp - 1);
  if (pp > 1)
    for (std::int64_t stage = 0; stage < pp; ++stage)
      placement.boundaries.push_back(dense.pipeline_pair(stage, (stage + 1) % pp));
  return placement;
}

}  // namespace

Status check_rank_order(const Layout& layout) {
  STEPCAST_TRY(detail::parse_rank_order(layout));
  return Ok{};
}

Result<Placement> place(const Layout& layout, std::int64_t gpus_per_node,
                        std::optional<std::int64_t> segment) {
  if (gpus_per_node < 1)
    return Error::at("", "gpus_per_node").found(fmt::format("{}", gpus_per_node)).expected("at least 1");
  STEPCAST_ASSIGN(const std::vector<Axis> order, detail::parse_rank_order(layout));
  STEPCAST_ASSIGN(const std::vector<GridAxis> axes, dense_axes(layout, order));
  const std::vector<GridAxis> of_experts = detail::expert_axes(layout, order);
  RankGrid dense{axes, gpus_per_node};
  RankGrid experts{of_experts, gpus_per_node};
  const bool straddles = dense.n_ranks() > gpus_per_node && !(dense.nodes_fit() && experts.nodes_fit());
  if (segment && straddles) {
    RankGrid dense_in_segments{axes, *segment}, experts_in_segments{of_experts, *segment};
    // If segments do not divide the number of ranks, the last one has fewer. Then only groups that
    // communicate in every layer have to stay inside.
    const auto stays_inside = [&](const GroupPlacement& g) { return (g.n_nodes - 1) * *segment < g.n_ranks; };
    const bool fit = (dense_in_segments.nodes_fit() && experts_in_segments.nodes_fit()) ||
                     (dense_in_segments.can_place() && experts_in_segments.can_place() &&
                      stays_inside(dense_in_segments.group(along(Axis::tensor))) &&
                      stays_inside(dense_in_segments.group(along(Axis::context))) &&
                      stays_inside(experts_in_segments.group(along(Axis::expert))));
    if (fit) {
      gpus_per_node = *segment;
      dense = std::move(dense_in_segments);
      experts = std::move(experts_in_segments);
    }
  }
  if (!dense.can_place()) return too_many_ranks(dense, gpus_per_node);
  if (experts.n_ranks() != dense.n_ranks()) {
    return Error::at(
        "", "expert_parallel",
        fmt::format("expert_tensor_parallel {} x expert_parallel {} does not divide the {} ranks of a "
                    "stage",
                    layout.expert_tensor_degree(), layout.degrees.expert,
                    dense.n_ranks() / layout.degrees.pipeline));
  }
  if (!experts.can_place()) return too_many_ranks(experts, gpus_per_node);
  // Experts and dense weights of a layer must be on the same pipeline stage.
  const bool has_expert_groups =
      layout.degrees.expert > 1 || layout.expert_tensor_degree() != layout.degrees.tensor;
  if (has_expert_groups && layout.degrees.pipeline > 1 &&
      dense.stride(Axis::pipeline) != experts.stride(Axis::pipeline)) {
    return Error::at(
               "", "rank_order",
               fmt::format(
                   "in the order {}, experts and the rest of the model are on different pipeline stages",
                   layout.rank_order))
        .advice("put pp last");
  }

  return placement_of(layout.degrees.pipeline, gpus_per_node, dense, experts);
}

}  // namespace stepcast

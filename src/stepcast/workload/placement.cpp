#include "stepcast/workload/placement.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "stepcast/workload/detail/divisors.h"
#include "stepcast/workload/detail/rank_grid.h"

namespace stepcast {
namespace {

using detail::Axis;
using detail::GridAxis;
using detail::RankGrid;

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

// All five axes from the fastest to the slowest.
Result<std::vector<Axis>> parse_rank_order(const Layout& layout) {
  const auto wrong = [&] {
    return Error::at("", "rank_order")
        .found(fmt::format("`{}`", layout.rank_order))
        .expected("tp, cp, ep, dp and pp in any order, joined by '-'");
  };
  std::vector<Axis> order;
  std::string_view rest = layout.rank_order;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('-'), rest.size());
    const std::string_view word = rest.substr(0, end);
    const auto* named =
        std::find_if(kAxisNames.begin(), kAxisNames.end(), [&](const AxisName& a) { return a.name == word; });
    if (named == kAxisNames.end() || std::find(order.begin(), order.end(), named->axis) != order.end())
      return wrong();
    order.push_back(named->axis);
    if (end + 1 == rest.size()) return wrong();  // ends with '-'
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const AxisName& a : kAxisNames) {
    if (std::find(order.begin(), order.end(), a.axis) != order.end()) continue;
    if (degree(layout, a.axis) > 1) return wrong();
    order.push_back(a.axis);
  }
  return order;
}

// Context and data axes are cut in two where shard groups are smaller than both together.
Result<std::vector<GridAxis>> dense_axes(const Layout& layout, const std::vector<Axis>& order) {
  std::vector<GridAxis> axes;
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

auto along(Axis wanted) {
  return [wanted](const GridAxis& a) { return a.axis == wanted; };
}

bool carries_data(const GridAxis& a) { return a.axis == Axis::data || a.axis == Axis::context; }

Error too_many_ranks(const RankGrid& grid, std::int64_t gpus_per_node) {
  return Error{fmt::format("{} ranks, and nodes of {} GPUs cut through the groups of the layout",
                           grid.n_ranks(), gpus_per_node)}
      .expected(fmt::format("degrees that fit a node, or at most {} ranks", RankGrid::kMostEnumerated));
}

}  // namespace

Status check_rank_order(const Layout& layout) {
  STEPCAST_TRY(parse_rank_order(layout));
  return Ok{};
}

Result<Placement> place(const Layout& layout, std::int64_t gpus_per_node,
                        std::optional<std::int64_t> segment) {
  if (gpus_per_node < 1) {
    return Error::at("", "gpus_per_node").found(fmt::format("{}", gpus_per_node)).expected("at least 1");
  }
  STEPCAST_ASSIGN(const std::vector<Axis> order, parse_rank_order(layout));
  STEPCAST_ASSIGN(const std::vector<GridAxis> axes, dense_axes(layout, order));
  const std::vector<GridAxis> of_experts = expert_axes(layout, order);
  RankGrid dense{axes, gpus_per_node};
  RankGrid experts{of_experts, gpus_per_node};
  const bool straddles = dense.n_ranks() > gpus_per_node && !(dense.nodes_fit() && experts.nodes_fit());
  if (segment && straddles) {
    RankGrid dense_in_segments{axes, *segment}, experts_in_segments{of_experts, *segment};
    if (dense_in_segments.nodes_fit() && experts_in_segments.nodes_fit()) {
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
  const bool has_expert_groups =
      layout.degrees.expert > 1 || layout.expert_tensor_degree() != layout.degrees.tensor;
  if (has_expert_groups && layout.degrees.pipeline > 1 &&
      dense.stride(Axis::pipeline) != experts.stride(Axis::pipeline)) {
    return Error::at("", "rank_order",
                     fmt::format(
                         "in the order {} experts and the rest of the model lie on different pipeline stages",
                         layout.rank_order))
        .advice("put pp last");
  }

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

  const std::int64_t pp = layout.degrees.pipeline;
  placement.embedding = dense.pipeline_pair(0, pp - 1);
  if (pp > 1) {
    for (std::int64_t stage = 0; stage < pp; ++stage) {
      placement.boundaries.push_back(dense.pipeline_pair(stage, (stage + 1) % pp));
    }
  }
  return placement;
}

}  // namespace stepcast

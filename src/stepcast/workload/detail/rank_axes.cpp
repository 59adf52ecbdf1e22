#include "stepcast/workload/detail/rank_axes.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "stepcast/workload/detail/divisors.h"

namespace stepcast::detail {
namespace {

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

}  // namespace stepcast::detail

#include "stepcast/cost/families/grid_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/families/record_numbers.h"

namespace stepcast {
namespace {

// The knot at or below x, and how far x is on the way to the next one.
struct Position {
  std::size_t knot;
  float share;
};

Position locate(const std::vector<float>& knots, float x) {
  if (knots.size() == 1 || !(x > knots.front())) return {0, 0};
  if (!(x < knots.back())) return {knots.size() - 2, 1};
  const auto above = std::upper_bound(knots.begin(), knots.end(), x);
  const auto knot = static_cast<std::size_t>(above - knots.begin()) - 1;
  return {knot, (x - knots[knot]) / (knots[knot + 1] - knots[knot])};
}

}  // namespace

Result<GridTable> GridTable::make(Parameters p, std::size_t n_features) {
  if (p.axes.empty() || p.axes.size() > 2)
    return Error{fmt::format("{} axes (must be 1 or 2)", p.axes.size())};
  std::size_t count = 1;
  for (const Axis& axis : p.axes) {
    if (axis.feature >= n_features)
      return Error{fmt::format("an axis along feature {} of {}", axis.feature, n_features)};
    if (axis.knots.empty()) return Error{"an axis without knots"};
    for (std::size_t i = 0; i < axis.knots.size(); ++i)
      if (!std::isfinite(axis.knots[i]) || (i > 0 && axis.knots[i] <= axis.knots[i - 1]))
        return Error{"the knots of an axis must increase"};
    count *= axis.knots.size();
    if (count > kMostValues) return Error{fmt::format("more than {} values", kMostValues)};
  }
  if (p.values.size() != count)
    return Error{fmt::format("`values` has {} numbers (must be {})", p.values.size(), count)};
  GridTable table;
  table.parameters_ = std::move(p);
  return table;
}

void GridTable::add(std::span<const float> rows, std::size_t stride, double weight,
                    std::span<double> sums) const {
  const std::vector<Axis>& axes = parameters_.axes;
  const std::vector<float>& values = parameters_.values;
  for (std::size_t row = 0; row < sums.size(); ++row) {
    const float* x = rows.data() + row * stride;
    const Position a = locate(axes[0].knots, x[axes[0].feature]);
    const std::size_t next_a = std::min(a.knot + 1, axes[0].knots.size() - 1);
    float value = 0;
    if (axes.size() == 1) {
      value = values[a.knot] + a.share * (values[next_a] - values[a.knot]);
    } else {
      const std::size_t width = axes[1].knots.size();
      const Position b = locate(axes[1].knots, x[axes[1].feature]);
      const std::size_t next_b = std::min(b.knot + 1, width - 1);
      const auto along_b = [&](std::size_t line) {
        const float low = values[line * width + b.knot], high = values[line * width + next_b];
        return low + b.share * (high - low);
      };
      const float low = along_b(a.knot), high = along_b(next_a);
      value = low + a.share * (high - low);
    }
    sums[row] += weight * static_cast<double>(value);
  }
}

Result<GridTable> GridTable::read(const JsonValue& value, std::size_t n_features) {
  Parameters p;
  const JsonValue* axes = value.find("axes");
  if (axes == nullptr || !axes->is_array()) return Error{"`axes` is missing (must be an array)"};
  for (const JsonValue& item : axes->items()) {
    if (!item.is_object()) return Error{"`axes` must hold objects"};
    Axis axis;
    STEPCAST_ASSIGN(const double feature, finite_number(item, "feature"));
    if (!(feature >= 0 && feature < 1000)) return Error{fmt::format("`feature` is {:g}", feature)};
    axis.feature = static_cast<std::size_t>(feature);
    STEPCAST_ASSIGN(const std::vector<double> knots, finite_numbers(item, "knots"));
    for (const double knot : knots) axis.knots.push_back(static_cast<float>(knot));
    p.axes.push_back(std::move(axis));
  }
  STEPCAST_ASSIGN(const std::vector<double> values, finite_numbers(value, "values"));
  for (const double v : values) p.values.push_back(static_cast<float>(v));
  return make(std::move(p), n_features);
}

JsonValue GridTable::write() const {
  JsonValue value = JsonValue::object();
  JsonValue axes = JsonValue::array();
  for (const Axis& axis : parameters_.axes) {
    JsonValue item = JsonValue::object();
    item.add("feature", JsonValue{static_cast<double>(axis.feature)});
    item.add("knots", number_array(axis.knots));
    axes.add(std::move(item));
  }
  value.add("axes", std::move(axes));
  value.add("values", number_text(parameters_.values));
  return value;
}

}  // namespace stepcast

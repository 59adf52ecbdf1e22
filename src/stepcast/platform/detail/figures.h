// The figures of a platform file that are plain numbers: key, unit, limits, and their place in a Platform.
// One table serves the reader, the writer, the checks and `stepcast platforms`.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"

namespace stepcast::detail {

// One row of the table for a group (Device, Node, IntraNode, Network).
template <class Group>
struct Figure {
  std::string key;
  double unit = 1;        // base units per unit of the key
  double largest = 1e6;   // limit in the unit of the key; more is probably a wrong unit
  bool is_count = false;  // a whole number of at least 1
  bool required = false;
  std::function<std::optional<double>(const Group&)> get;  // in base units
  // None removes the figure; allowed only if it is not required.
  std::function<void(Group&, std::optional<double>)> set;

  // The value in the unit of the key; none: not stated.
  [[nodiscard]] std::optional<double> in_file(const Group& group) const {
    const auto value = get(group);
    return value ? std::optional<double>{without_unit(*value)} : std::nullopt;
  }
  // The shortest x with x * unit == value, so that a written file reads back as the same number.
  [[nodiscard]] double without_unit(double value) const;
  // The allowed range, if `x` (in the unit of the key) is outside of it; else empty.
  [[nodiscard]] std::string expectation_broken_by(double x) const;
};

// See Figure::without_unit() and Figure::expectation_broken_by().
[[nodiscard]] double shortest_quotient(double value, double unit);
[[nodiscard]] std::string broken_expectation(double x, bool is_count, double largest);
// A number as in JSON files, in shortest form.
[[nodiscard]] std::string json_number(double x);

template <class Group>
double Figure<Group>::without_unit(double value) const {
  return shortest_quotient(value, unit);
}
template <class Group>
std::string Figure<Group>::expectation_broken_by(double x) const {
  return broken_expectation(x, is_count, largest);
}

// The tables, in the order of docs/platform-file.md.
[[nodiscard]] std::span<const Figure<Device>> device_figures();
[[nodiscard]] std::span<const Figure<Node>> node_figures();
[[nodiscard]] std::span<const Figure<IntraNode>> intra_figures();
[[nodiscard]] std::span<const Figure<Network>> network_figures();

// Members with an origin that are not plain numbers.
inline constexpr std::string_view kIntraOthers[] = {"kind", "links", "axes"};
inline constexpr std::string_view kNetworkOthers[] = {"kind", "rail_optimized", "tiers"};

}  // namespace stepcast::detail

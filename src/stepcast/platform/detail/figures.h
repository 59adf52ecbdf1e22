// The figures of a platform file that are plain numbers: key, unit, limits, and where they live in a
// Platform. One table for the reader, the writer, the checks and what `stepcast platforms` shows.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"

namespace stepcast::detail {

template <class Group>
struct Figure {
  std::string key;
  double unit = 1;       // the group holds value * unit
  double largest = 1e6;  // in the unit of the key; more is a unit mistaken
  bool is_count = false;
  bool required = false;
  std::function<std::optional<double>(const Group&)> get;  // in base units
  // Nothing: take the figure away; only if not required.
  std::function<void(Group&, std::optional<double>)> set;

  // As the file says it.
  [[nodiscard]] std::optional<double> in_file(const Group& group) const {
    const auto value = get(group);
    return value ? std::optional<double>{without_unit(*value)} : std::nullopt;
  }
  // The shortest x with x * unit == value, so that reading what was written gives the same number.
  [[nodiscard]] double without_unit(double value) const;
  // What is wrong with `x`, in the unit of the key; empty if nothing is.
  [[nodiscard]] std::string expectation_broken_by(double x) const;
};

[[nodiscard]] double shortest_quotient(double value, double unit);
[[nodiscard]] std::string broken_expectation(double x, bool is_count, double largest);
[[nodiscard]] std::string json_number(double x);

template <class Group>
double Figure<Group>::without_unit(double value) const {
  return shortest_quotient(value, unit);
}
template <class Group>
std::string Figure<Group>::expectation_broken_by(double x) const {
  return broken_expectation(x, is_count, largest);
}

[[nodiscard]] std::span<const Figure<Device>> device_figures();
[[nodiscard]] std::span<const Figure<Node>> node_figures();
[[nodiscard]] std::span<const Figure<IntraNode>> intra_figures();
[[nodiscard]] std::span<const Figure<Network>> network_figures();

// Figures that are no plain numbers but have an origin of their own.
inline constexpr std::string_view kIntraOthers[] = {"kind", "links", "axes"};
inline constexpr std::string_view kNetworkOthers[] = {"kind", "rail_optimized", "tiers"};

}  // namespace stepcast::detail

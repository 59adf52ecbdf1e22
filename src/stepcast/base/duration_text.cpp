#include "stepcast/base/duration_text.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "stepcast/base/text.h"

namespace stepcast {
namespace {

struct DurationUnit {
  double per_ms;
  std::string_view name;
};

DurationUnit unit_of_duration(double ms) {
  const double size = std::abs(ms);
  if (size >= 999.5) return {1e-3, "s"};
  if (size >= 0.9995 || size == 0) return {1, "ms"};
  return {1e3, "us"};
}

// Rounded to `digits` significant digits, but never to tens.
std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  const int before_point = size >= 1 ? static_cast<int>(std::floor(std::log10(size) + 1e-9)) + 1 : 1;
  return with_separators(fmt::format("{:.{}f}", value, std::max(0, digits - before_point)));
}

int digits_of(double ms, double p10_ms, double p90_ms) { return p90_ms - p10_ms > 0.02 * ms ? 3 : 4; }

}  // namespace

std::string duration_text(double ms, int digits) {
  const DurationUnit unit = unit_of_duration(ms);
  return fmt::format("{} {}", significant(ms * unit.per_ms, digits), unit.name);
}

std::string duration_text(double ms, double p10_ms, double p90_ms) {
  return duration_text(ms, digits_of(ms, p10_ms, p90_ms));
}

std::string band_text(double ms, double p10_ms, double p90_ms) {
  if (p10_ms >= p90_ms) return {};
  const DurationUnit unit = unit_of_duration(ms);
  const int digits = digits_of(ms, p10_ms, p90_ms);
  return fmt::format("p10 {}, p90 {}", significant(p10_ms * unit.per_ms, digits),
                     significant(p90_ms * unit.per_ms, digits));
}

}  // namespace stepcast

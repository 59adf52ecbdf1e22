#include "stepcast/cost/sustained_clock.h"

#include <cmath>

#include <fmt/format.h>

#include "stepcast/cost/families/record_numbers.h"

namespace stepcast {
namespace {

Result<double> slowdown(const JsonValue& parameters, std::string_view key) {
  STEPCAST_ASSIGN(const double value, finite_number(parameters, key));
  if (!(value >= 1)) return Error{fmt::format("`{}` is {:g} (must be 1 or more)", key, value)};
  return value;
}

}  // namespace

double SustainedClock::factor(Microseconds time) const {
  if (time_factor <= 1 || time >= none_above) return power_factor;
  if (time <= full_below) return time_factor * power_factor;
  const double faded = std::log(time / full_below) / std::log(none_above / full_below);
  return (time_factor + (1 - time_factor) * faded) * power_factor;
}

Result<SustainedClock> SustainedClock::read(const JsonValue& parameters) {
  SustainedClock clock;
  STEPCAST_ASSIGN(clock.time_factor, slowdown(parameters, "time_factor"));
  STEPCAST_ASSIGN(const double full_below_us, positive_number(parameters, "full_below_us"));
  STEPCAST_ASSIGN(const double none_above_us, positive_number(parameters, "none_above_us"));
  if (!(none_above_us > full_below_us)) {
    return Error{fmt::format("`none_above_us` is {:g} (must be above `full_below_us`, {:g})", none_above_us,
                             full_below_us)};
  }
  clock.full_below = Microseconds{full_below_us};
  clock.none_above = Microseconds{none_above_us};
  if (parameters.find("power_factor") != nullptr) {
    STEPCAST_ASSIGN(clock.power_factor, slowdown(parameters, "power_factor"));
  }
  return clock;
}

JsonValue SustainedClock::write() const {
  JsonValue value = JsonValue::object();
  value.add("time_factor", JsonValue{time_factor});
  value.add("full_below_us", JsonValue{full_below.value()});
  value.add("none_above_us", JsonValue{none_above.value()});
  if (power_factor != 1) value.add("power_factor", JsonValue{power_factor});
  return value;
}

}  // namespace stepcast

// What a model answers when it is asked for a time: the time, how sure it is, and what it rests on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stepcast/base/quantity.h"

namespace stepcast {

// From the best ground to the weakest.
enum class EstimateSource : std::uint8_t {
  measured,  // a measurement of this very thing
  fitted,    // a model that was fitted to measurements
  analytic,  // arithmetic on figures of the platform
  assumed,   // a guess that nothing here supports
};

[[nodiscard]] constexpr std::string_view to_string(EstimateSource source) {
  switch (source) {
    case EstimateSource::measured: return "measured";
    case EstimateSource::fitted: return "fitted";
    case EstimateSource::analytic: return "analytic";
    case EstimateSource::assumed: return "assumed";
  }
  return "assumed";
}

// Its place in a table with a row or column for each source.
[[nodiscard]] constexpr std::size_t index_of(EstimateSource source) {
  return static_cast<std::size_t>(source);
}

// What rests on two things rests on the weaker one.
[[nodiscard]] constexpr EstimateSource weaker(EstimateSource a, EstimateSource b) { return std::max(a, b); }

struct Estimate {
  Microseconds time;
  Microseconds p10, p90;  // 80 of 100 measurements should lie between
  EstimateSource source = EstimateSource::assumed;

  // The same work made slower or faster: all three times.
  [[nodiscard]] constexpr Estimate scaled(double factor) const {
    return {time * factor, p10 * factor, p90 * factor, source};
  }
};

}  // namespace stepcast

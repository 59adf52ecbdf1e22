// A forecast time with its uncertainty and its basis.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stepcast/base/quantity.h"

namespace stepcast {

// The basis of an estimate, from the strongest to the weakest.
enum class EstimateSource : std::uint8_t {
  measured,  // a measurement of exactly this work
  fitted,    // a model fitted to measurements
  analytic,  // formulas on figures of the platform
  assumed,   // a guess without evidence
};

// The name in reports and JSON: "measured", "fitted", "analytic", "assumed".
[[nodiscard]] constexpr std::string_view to_string(EstimateSource source) {
  switch (source) {
    case EstimateSource::measured: return "measured";
    case EstimateSource::fitted: return "fitted";
    case EstimateSource::analytic: return "analytic";
    case EstimateSource::assumed: return "assumed";
  }
  return "assumed";
}

// Index of a source in tables with one row or column per source.
[[nodiscard]] constexpr std::size_t index_of(EstimateSource source) {
  return static_cast<std::size_t>(source);
}

// The basis of a result of two estimates is the weaker one.
[[nodiscard]] constexpr EstimateSource weaker(EstimateSource a, EstimateSource b) { return std::max(a, b); }

// A time with an 80 % interval, in microseconds, and its basis. Reports show the interval as a band and the
// basis as a share of the time.
struct Estimate {
  Microseconds time;
  Microseconds p10, p90;  // 80 of 100 measurements should be between them
  // The basis; for a combined time the weakest of its parts (weaker()).
  EstimateSource source = EstimateSource::assumed;

  // The same estimate with all three times multiplied by `factor`.
  [[nodiscard]] constexpr Estimate scaled(double factor) const {
    return {time * factor, p10 * factor, p90 * factor, source};
  }
};

}  // namespace stepcast

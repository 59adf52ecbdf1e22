// An interval of simulated or recorded time, in microseconds on a common clock.
#pragma once

namespace stepcast {

struct Interval {
  double start_us = 0;
  double end_us = 0;
  [[nodiscard]] constexpr double length_us() const { return end_us - start_us; }
};

}  // namespace stepcast

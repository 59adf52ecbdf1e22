// What differs between two forecasts, largest first. Works on values alone: forecasts of other days, read from
// JSON, compare like fresh ones.
//
//   const Comparison c = compare(measured, simulated);
//   c.step_difference_ms            b - a
//   c.parts.front()                 {"idle: cpu", 2.36, 2.21}: the largest difference of the critical class
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stepcast/analyze/forecast.h"

namespace stepcast {

// A time that both have, or one of them: what is not there took no time.
struct Difference {
  std::string key{};
  double a_ms = 0, b_ms = 0;
  [[nodiscard]] double difference_ms() const { return b_ms - a_ms; }
  friend bool operator==(const Difference&, const Difference&) = default;
};

// Which part alone would have to be how many times as long for one to take as long as the other.
struct Explanation {
  std::string part{};  // a key of ForecastClass::parts()
  double time_ms = 0;  // of the one that has parts
  double factor = 1;
  double deviations = 0;  // the logarithm of the factor over what such a part is usually off
  friend bool operator==(const Explanation&, const Explanation&) = default;
};

struct Comparison {
  std::string verdict;  // one sentence: by how much, of what most, and whether the intervals tell them apart
  double a_step_time_ms = 0, b_step_time_ms = 0;
  double a_p10_ms = 0, a_p90_ms = 0, b_p10_ms = 0, b_p90_ms = 0;
  bool intervals_overlap = false;  // p10 to p90 of both
  double step_difference_ms = 0;
  std::optional<double> step_difference_percent;  // of a; nothing where a takes no time
  // Settings that differ, "tensor_parallel: 4 -> 8".
  std::vector<std::string> settings;
  // All lists: largest difference first, equal ones by key; without what is the same in both.
  std::vector<Difference> groups;        // exposed communication of the critical classes by group of ranks
  std::vector<Difference> parts;         // of the critical classes, keys of ForecastClass::parts()
  std::vector<Difference> rank_classes;  // step of the classes, by name
  std::vector<Difference> collectives;   // longest wait and transfer: "NAME #ORDINAL wait", "... transfer"
  // Where one of them is a log, which has no parts: what the difference may be, the likeliest first. The smaller the
  // factor against what such a part is usually off by, the likelier.
  std::vector<Explanation> explanations;
  std::vector<Difference> critical_path;  // by class and by name: "class: cpu", "name: aten::mm"
};

[[nodiscard]] Comparison compare(const Forecast& a, const Forecast& b);

}  // namespace stepcast

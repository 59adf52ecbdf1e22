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
#include "stepcast/base/fields.h"

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
  STEPCAST_FIELDS(Explanation);
  STEPCAST_FIELD(std::string, part, "part of the step");  // a key of ForecastClass::parts()
  STEPCAST_FIELD(double, time_ms,
                 "time of the part in ms, in the run with known parts");  // of the one that has parts
  STEPCAST_FIELD(double, factor, "factor on the part that alone would explain the difference", 1);
  STEPCAST_FIELD(double, deviations, "logarithm of the factor over the usual error of such a part");
};

// All lists: largest difference first, equal ones by key; without what is the same in both.
struct Comparison {
  STEPCAST_FIELDS(Comparison);
  // One sentence: by how much, of what most, and whether the intervals tell them apart.
  STEPCAST_FIELD(std::string, verdict, "");
  STEPCAST_FIELD(double, a_step_time_ms, "");
  STEPCAST_FIELD(double, b_step_time_ms, "");
  STEPCAST_FIELD_AS("a_step_time_p10_ms", double, a_p10_ms, "");
  STEPCAST_FIELD_AS("a_step_time_p90_ms", double, a_p90_ms, "");
  STEPCAST_FIELD_AS("b_step_time_p10_ms", double, b_p10_ms, "");
  STEPCAST_FIELD_AS("b_step_time_p90_ms", double, b_p90_ms, "");
  STEPCAST_FIELD(double, step_difference_ms, "step time of B minus that of A, in ms");
  STEPCAST_FIELD(std::optional<double>, step_difference_percent,
                 "step_difference_ms in percent of the step time of A");  // nothing where a takes no time
  STEPCAST_FIELD(bool, intervals_overlap, "");                            // p10 to p90 of both
  STEPCAST_FIELD(std::vector<std::string>, settings, "");                 // "tensor_parallel: 4 -> 8"
  // Keys of ForecastClass::parts().
  STEPCAST_FIELD(std::vector<Difference>, parts, "differences of the parts of the critical rank classes");
  STEPCAST_FIELD(std::vector<Difference>, groups,
                 "differences of the exposed communication of the critical rank classes, by process group");
  // The step of the classes by name; longest wait and transfer, "NAME #ORDINAL wait"; "class: cpu", "name: aten::mm".
  STEPCAST_FIELD(std::vector<Difference>, rank_classes, "");
  STEPCAST_FIELD(std::vector<Difference>, collectives, "");
  STEPCAST_FIELD(std::vector<Difference>, critical_path, "");
  // What the difference may be, the likeliest first: the smaller the factor against what such a part is usually off by.
  STEPCAST_FIELD(std::vector<Explanation>, explanations,
                 "if one side is a log: parts that alone would explain the difference, likeliest first");
};

[[nodiscard]] Comparison compare(const Forecast& a, const Forecast& b);

}  // namespace stepcast

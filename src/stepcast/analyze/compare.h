// The differences between two forecasts, largest first. Uses only the values of the forecasts, so forecasts
// that were read from JSON can be compared like fresh ones.
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

// One time in both forecasts. A time that one of them does not have counts as 0.
struct Difference {
  std::string key{};
  double a_ms = 0, b_ms = 0;
  [[nodiscard]] double difference_ms() const { return b_ms - a_ms; }
  friend bool operator==(const Difference&, const Difference&) = default;
};

// One part that could explain a difference alone: the factor by which it would have to change for one
// forecast to take as long as the other.
struct Explanation {
  STEPCAST_FIELDS(Explanation);
  STEPCAST_FIELD(std::string, part, "part of the step");  // a key of ForecastClass::parts()
  STEPCAST_FIELD(double, time_ms,
                 "time of the part in ms, in the run with known parts");  // of the forecast that has parts
  STEPCAST_FIELD(double, factor, "factor on the part that alone would explain the difference", 1);
  STEPCAST_FIELD(double, deviations, "logarithm of the factor over the usual error of such a part");
};

// The result of compare(). All lists have the largest difference first, equal ones by key; equal times are
// left out.
struct Comparison {
  STEPCAST_FIELDS(Comparison);
  // Jobs with other models are different; those with another layout, batch or platform are not.
  STEPCAST_FIELD(std::string, different_jobs,
                 "sentence that names both jobs if they are different; empty: one job");
  // The sentence above, and one more: the difference, the part that contributes most, and whether the
  // intervals p10 to p90 overlap.
  STEPCAST_FIELD(std::string, verdict, "");
  STEPCAST_FIELD(double, a_step_time_ms, "");
  STEPCAST_FIELD(double, b_step_time_ms, "");
  STEPCAST_FIELD_AS("a_step_time_p10_ms", double, a_p10_ms, "");
  STEPCAST_FIELD_AS("a_step_time_p90_ms", double, a_p90_ms, "");
  STEPCAST_FIELD_AS("b_step_time_p10_ms", double, b_p10_ms, "");
  STEPCAST_FIELD_AS("b_step_time_p90_ms", double, b_p90_ms, "");
  STEPCAST_FIELD(double, step_difference_ms, "step time of B minus that of A, in ms");
  STEPCAST_FIELD(std::optional<double>, step_difference_percent,
                 "step_difference_ms in percent of the step time of A");  // nothing if a takes no time
  STEPCAST_FIELD(bool, intervals_overlap, "");                            // p10 to p90 of both
  STEPCAST_FIELD(std::vector<std::string>, settings, "");                 // "tensor_parallel: 4 -> 8"
  // The keys are those of ForecastClass::parts().
  STEPCAST_FIELD(std::vector<Difference>, parts, "differences of the parts of the critical rank classes");
  STEPCAST_FIELD(std::vector<Difference>, groups,
                 "differences of the exposed communication of the critical rank classes, by process group");
  // Keys: names of the classes; "NAME #ORDINAL wait" and "NAME #ORDINAL transfer"; "class: cpu", "name:
  // aten::mm".
  STEPCAST_FIELD(std::vector<Difference>, rank_classes, "");
  STEPCAST_FIELD(std::vector<Difference>, collectives, "");
  STEPCAST_FIELD(std::vector<Difference>, critical_path, "");
  // Most likely first: by the factor relative to the usual error of such a part. Only if one side is a log,
  // which has a step time but no parts.
  STEPCAST_FIELD(std::vector<Explanation>, explanations,
                 "if one side is a log: parts that alone would explain the difference, likeliest first");
};

// Compares two forecasts. If one of them has no parts (a log), only the settings, the step times and possible
// explanations are filled in.
[[nodiscard]] Comparison compare(const Forecast& a, const Forecast& b);

}  // namespace stepcast

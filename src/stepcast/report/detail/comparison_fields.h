// The members of a Comparison in JSON (report/fields/fields.h), for every answer that holds one.
#pragma once

#include "stepcast/analyze/compare.h"
#include "stepcast/report/fields/fields.h"

namespace stepcast {

constexpr std::string_view schema_name(const Difference*) { return "difference"; }

void fields(auto& a, Is<Difference> auto& d) {
  constexpr int kDecimals = 6;
  a("key", d.key);
  a("a_ms", fixed<kDecimals>(d.a_ms));
  a("b_ms", fixed<kDecimals>(d.b_ms));
  a("difference_ms", fixed<kDecimals>(d.difference_ms()));
}

void fields(auto& a, Is<Explanation> auto& e) {
  a("part", e.part);
  a("time_ms", e.time_ms);
  a("factor", e.factor);
  a("deviations", e.deviations, "the logarithm of the factor over what such a part is usually off");
}

void fields(auto& a, Is<Comparison> auto& c) {
  a("verdict", c.verdict);
  a("a_step_time_ms", c.a_step_time_ms);
  a("b_step_time_ms", c.b_step_time_ms);
  a("a_step_time_p10_ms", c.a_p10_ms);
  a("a_step_time_p90_ms", c.a_p90_ms);
  a("b_step_time_p10_ms", c.b_p10_ms);
  a("b_step_time_p90_ms", c.b_p90_ms);
  a("step_difference_ms", c.step_difference_ms, "b - a");
  a("step_difference_percent", c.step_difference_percent, "of a");
  a("intervals_overlap", c.intervals_overlap);
  a("settings", c.settings);
  a("parts", c.parts, "of the critical classes");
  a("groups", c.groups, "exposed communication of the critical classes");
  a("rank_classes", c.rank_classes);
  a("collectives", c.collectives);
  a("critical_path", c.critical_path);
  a("explanations", c.explanations, "where one is a log: which part alone would explain the difference");
}

}  // namespace stepcast

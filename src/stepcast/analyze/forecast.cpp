#include "stepcast/analyze/forecast.h"

#include <fmt/format.h>

namespace stepcast {

double sum_ms(const NamedTimes& times) {
  double sum = 0;
  for (const NamedTime& time : times) sum += time.time_ms;
  return sum;
}

double time_ms(const NamedTimes& times, std::string_view key) {
  for (const NamedTime& time : times)
    if (time.key == key) return time.time_ms;
  return 0;
}

NamedTimes ForecastClass::parts() const {
  // Parts of no length would only make lists longer.
  NamedTimes parts;
  const auto add = [&](std::string key, double ms) {
    if (ms > 0) parts.push_back({std::move(key), ms});
  };
  for (const NamedTime& t : computation_by_class_ms) add(fmt::format("computation: {}", t.key), t.time_ms);
  for (const NamedTime& t : exposed_comm_by_group_ms)
    add(fmt::format("exposed communication: {}", t.key), t.time_ms);
  add("exposed copies", exposed_memcpy_ms);
  for (const NamedTime& t : idle_ms) add(fmt::format("idle: {}", t.key), t.time_ms);
  return parts;
}

}  // namespace stepcast

#include "stepcast/report/forecast_json.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/report/fields/answer_fields.h"
#include "stepcast/report/fields/read_fields.h"

namespace stepcast {
namespace {

// Checks all indices into rank_classes, because callers use them without a check of their own.
Status check_positions(const Forecast& forecast, const std::string& name) {
  const std::size_t n = forecast.classes.size();
  const auto check = [&](std::uint32_t position, std::string place) -> Status {
    if (position < n) return Ok{};
    return Error::at(name, std::move(place))
        .found(fmt::format("{}", position))
        .expected(fmt::format("an index into rank_classes, which has {} entries", n));
  };
  if (n > 0 || forecast.critical_class > 0) STEPCAST_TRY(check(forecast.critical_class, "critical_class"));
  for (std::size_t i = 0; i < forecast.collectives.size(); ++i) {
    const ForecastCollective& collective = forecast.collectives[i];
    STEPCAST_TRY(check(collective.came_last, fmt::format("collectives[{}].came_last", i)));
    for (const ForecastMember& member : collective.members)
      STEPCAST_TRY(check(member.rank_class, fmt::format("collectives[{}].members", i)));
  }
  const ForecastPath& path = forecast.critical_path;
  if (path.ends_on) STEPCAST_TRY(check(*path.ends_on, "critical_path.ends_on"));
  for (const ForecastPathStep& step : path.steps) STEPCAST_TRY(check(step.rank_class, "critical_path.steps"));
  return Ok{};
}

// Checks that step times are not negative and that p10 is not above p90.
Status check_step(const Forecast& f, const std::string& name) {
  for (const auto& [key, ms] : {std::pair{"step_time_ms", f.step_time_ms},
                                {"step_time_p10_ms", f.step_time_p10_ms},
                                {"step_time_p90_ms", f.step_time_p90_ms}}) {
    if (ms < 0) return Error::at(name, key).found(fmt::format("{:g}", ms)).expected("a time of 0 or more");
  }
  if (f.step_time_p10_ms > f.step_time_p90_ms) {
    return Error::at(name, "step_time_p10_ms")
        .found(fmt::format("{:g}", f.step_time_p10_ms))
        .expected(fmt::format("at most step_time_p90_ms, which is {:g}", f.step_time_p90_ms));
  }
  return Ok{};
}

}  // namespace

void detail::fields(FieldWriter& writer, const Forecast& forecast) { fields<FieldWriter>(writer, forecast); }

std::string forecast_json(const Forecast& forecast) { return answer_json(forecast); }

std::string forecast_schema() { return answer_schema<Forecast>(); }

JsonLimits forecast_json_limits() {
  // A forecast of thousands of ranks with all collectives has tens of megabytes.
  JsonLimits limits;
  limits.max_bytes = std::size_t{1} << 28;
  limits.max_values = 20'000'000;
  return limits;
}

Result<Forecast> forecast_from_json(std::string_view text, const std::string& name) {
  STEPCAST_ASSIGN(const JsonValue root, parse_json(text, name, forecast_json_limits()));
  return forecast_from_json(root, name);
}

// The list of members checks types and names; the two checks below cover what types cannot express.
Result<Forecast> forecast_from_json(const JsonValue& value, const std::string& name) {
  STEPCAST_ASSIGN(Forecast forecast, read_answer<Forecast>(value, "stepcast predict --json", name));
  STEPCAST_TRY(check_positions(forecast, name));
  STEPCAST_TRY(check_step(forecast, name));
  return forecast;
}

}  // namespace stepcast

// Reads what forecast_json.cpp writes.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/report/detail/forecast_fields.h"
#include "stepcast/report/forecast_json.h"

namespace stepcast {
namespace {

using detail::fields;

std::string shown(const JsonValue& value) {
  if (value.is_number()) return fmt::format("{}", value.number());
  if (value.is_text()) return fmt::format("`{}`", value.text().substr(0, 60));
  if (value.is_bool()) return value.truth() ? "true" : "false";
  return std::string{value.kind_name()};
}

// What nobody has to write: values that may be unknown, and lists.
template <class T>
constexpr bool kMayBeMissing = false;
template <class T>
constexpr bool kMayBeMissing<std::optional<T>> = true;
template <class T>
constexpr bool kMayBeMissing<std::vector<T>> = true;

// Members of one object. The first error stays; what follows it is not read.
class Reader {
 public:
  template <class T>
  using Of = T;
  Reader(const JsonValue& object, std::string path, const std::string& name)
      : object_(object), path_(std::move(path)), name_(name) {}

  template <class T>
  void operator()(std::string_view key, T& member, std::string_view /*meaning*/) {
    if (error_) return;
    const JsonValue* value = object_.find(key);
    const std::string path = path_.empty() ? std::string{key} : fmt::format("{}.{}", path_, key);
    if (value == nullptr) {
      if constexpr (!kMayBeMissing<T>) fail(object_, path, "is missing");
      return;
    }
    read(*value, path, member);
  }

  [[nodiscard]] Status status() && {
    if (error_) return std::move(*error_);
    return Ok{};
  }

 private:
  void fail(const JsonValue& at, const std::string& path, std::string problem) {
    error_ = Error::at(name_, fmt::format("line {}: {}", at.line(), path), std::move(problem));
  }
  void wrong(const JsonValue& found, const std::string& path, std::string_view expected) {
    error_ = Error::at(name_, fmt::format("line {}: {}", found.line(), path))
                 .found(shown(found))
                 .expected(std::string{expected});
  }

  void read(const JsonValue& value, const std::string& path, double& out) {
    if (!value.is_number()) return wrong(value, path, "a number");
    out = value.number();
  }
  void read(const JsonValue& value, const std::string& path, bool& out) {
    if (!value.is_bool()) return wrong(value, path, "true or false");
    out = value.truth();
  }
  template <class Integer>
    requires(std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>)
  void read(const JsonValue& value, const std::string& path, Integer& out) {
    // Doubles count exactly up to 2^53.
    constexpr double kExact = 9007199254740992.0;
    const double largest = std::min(kExact, static_cast<double>(std::numeric_limits<Integer>::max()));
    const double smallest = std::is_signed_v<Integer> ? -largest : 0.0;
    if (!value.is_number() || value.number() != std::floor(value.number()) || value.number() < smallest ||
        value.number() > largest) {
      return wrong(value, path, std::is_signed_v<Integer> ? "a whole number" : "a whole number from 0 on");
    }
    out = static_cast<Integer>(value.number());
  }
  void read(const JsonValue& value, const std::string& path, std::string& out) {
    if (!value.is_text()) return wrong(value, path, "a text");
    out = value.text();
  }
  void read(const JsonValue& value, const std::string& path, EstimateSource& out) {
    if (value.is_text()) {
      for (const EstimateSource source : {EstimateSource::measured, EstimateSource::fitted,
                                          EstimateSource::analytic, EstimateSource::assumed}) {
        if (value.text() != to_string(source)) continue;
        out = source;
        return;
      }
    }
    wrong(value, path, "measured, fitted, analytic or assumed");
  }
  template <class T>
  void read(const JsonValue& value, const std::string& path, std::optional<T>& out) {
    if (value.is_null()) return;
    read(value, path, out.emplace());
  }
  void read(const JsonValue& value, const std::string& path, NamedTimes& out) {
    if (!value.is_object()) return wrong(value, path, "an object of times");
    for (const JsonValue::Member& member : value.members()) {
      NamedTime time{.key = member.key};
      read(member.value, path + "." + member.key, time.time_ms);
      if (error_) return;
      out.push_back(std::move(time));
    }
  }
  void read(const JsonValue& value, const std::string& path, std::vector<Setting>& out) {
    if (!value.is_object()) return wrong(value, path, "an object of settings");
    for (const auto& [key, setting] : value.members()) {
      if (setting.is_bool()) {
        out.push_back({key, setting.truth()});
      } else if (setting.is_number()) {
        out.push_back({key, setting.number()});
      } else if (setting.is_text()) {
        out.push_back({key, setting.text()});
      } else {
        return wrong(setting, path + "." + key, "true, false, a number or a text");
      }
    }
  }
  template <class T>
  void read(const JsonValue& value, const std::string& path, std::vector<T>& out) {
    if (!value.is_array()) return wrong(value, path, "a list");
    out.reserve(value.items().size());
    for (std::size_t i = 0; i < value.items().size() && !error_; ++i) {
      read(value.items()[i], fmt::format("{}[{}]", path, i), out.emplace_back());
    }
  }
  template <class T>
    requires std::is_class_v<T>
  void read(const JsonValue& value, const std::string& path, T& out) {
    if (!value.is_object()) return wrong(value, path, "an object");
    Reader inner{value, path, name_};
    fields(inner, out);
    error_ = std::move(inner.error_);
  }

  const JsonValue& object_;
  std::string path_;
  const std::string& name_;
  std::optional<Error> error_;
};

// Positions in rank_classes must exist: callers follow them without looking.
Status check_positions(const Forecast& forecast, const std::string& name) {
  const std::size_t n = forecast.classes.size();
  const auto check = [&](std::uint32_t position, std::string place) -> Status {
    if (position < n) return Ok{};
    return Error::at(name, std::move(place))
        .found(fmt::format("{}", position))
        .expected(fmt::format("a position in rank_classes, which has {}", n));
  };
  if (n > 0 || forecast.critical_class > 0) STEPCAST_TRY(check(forecast.critical_class, "critical_class"));
  for (std::size_t i = 0; i < forecast.collectives.size(); ++i) {
    const ForecastCollective& collective = forecast.collectives[i];
    STEPCAST_TRY(check(collective.came_last, fmt::format("collectives[{}].came_last", i)));
    for (const ForecastMember& member : collective.members) {
      STEPCAST_TRY(check(member.rank_class, fmt::format("collectives[{}].members", i)));
    }
  }
  const ForecastPath& path = forecast.critical_path;
  if (path.ends_on) STEPCAST_TRY(check(*path.ends_on, "critical_path.ends_on"));
  for (const ForecastPathStep& step : path.steps) {
    STEPCAST_TRY(check(step.rank_class, "critical_path.steps"));
  }
  return Ok{};
}

Status check_step(const Forecast& f, const std::string& name) {
  for (const auto& [key, ms] : {std::pair{"step_time_ms", f.step_time_ms},
                                {"step_time_p10_ms", f.step_time_p10_ms},
                                {"step_time_p90_ms", f.step_time_p90_ms}}) {
    if (ms < 0) return Error::at(name, key).found(fmt::format("{:g}", ms)).expected("a time from 0 on");
  }
  if (f.step_time_p10_ms > f.step_time_p90_ms) {
    return Error::at(name, "step_time_p10_ms")
        .found(fmt::format("{:g}", f.step_time_p10_ms))
        .expected(fmt::format("at most step_time_p90_ms, which is {:g}", f.step_time_p90_ms));
  }
  return Ok{};
}

}  // namespace

JsonLimits forecast_json_limits() {
  // A forecast of thousands of ranks with all of its collectives is tens of megabytes.
  JsonLimits limits;
  limits.max_bytes = std::size_t{1} << 28;
  limits.max_values = 20'000'000;
  return limits;
}

Result<Forecast> forecast_from_json(std::string_view text, const std::string& name) {
  STEPCAST_ASSIGN(const JsonValue root, parse_json(text, name, forecast_json_limits()));
  return forecast_from_json(root, name);
}

Result<Forecast> forecast_from_json(const JsonValue& root, const std::string& name) {
  const JsonValue* schema = root.find("schema");
  if (schema == nullptr || !schema->is_text() || schema->text() != kForecastSchema) {
    return Error::at(name, schema == nullptr ? "line 1" : fmt::format("line {}: schema", schema->line()))
        .found(schema == nullptr ? "no key `schema`" : shown(*schema))
        .expected(fmt::format("`{}`: what stepcast predict --json prints", kForecastSchema));
  }
  Forecast forecast;
  Reader reader{root, "", name};
  fields(reader, forecast);
  STEPCAST_TRY(std::move(reader).status());
  STEPCAST_TRY(check_positions(forecast, name));
  STEPCAST_TRY(check_step(forecast, name));
  return forecast;
}

}  // namespace stepcast

// A Forecast as JSON and back: schema stepcast.forecast/1 (docs/schemas/forecast.json, docs/json.md).
//
//   const std::string text = forecast_json(forecast);
//   STEPCAST_ASSIGN(const Forecast same, forecast_from_json(text));
//
// Numbers are written with nine significant digits: reading a document and writing it again gives the same
// text.
#pragma once

#include <string>
#include <string_view>

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/result.h"
#include "stepcast/report/fields/field_list.h"

namespace stepcast {

class JsonValue;
struct JsonLimits;

template <>
struct Entry<NamedTime> {
  static constexpr auto key = &NamedTime::key;
  static constexpr auto value = &NamedTime::time_ms;
  static constexpr std::string_view kWhat = "times";
};
template <>
struct Entry<Setting> {
  static constexpr auto key = &Setting::name;
  static constexpr auto value = &Setting::value;
  static constexpr std::string_view kWhat = "settings";
};

inline constexpr std::string_view kForecastSchema = "stepcast.forecast/1";
constexpr AnswerHead answer_head(const Forecast*) {
  return {kForecastSchema, "stepcast forecast", AnswerHead::Numbers::nine_digits};
}
namespace detail {
class FieldWriter;
// For documents that hold forecasts.
void fields(FieldWriter& writer, const Forecast& forecast);
}  // namespace detail

[[nodiscard]] std::string forecast_json(const Forecast& forecast);

// Keys that it does not know are passed over: a later version may have added them. Errors name the line and
// the key: text that is no JSON, another schema, a key that is missing or holds something else, a position in
// rank_classes that does not exist. `name` stands for the text in errors.
[[nodiscard]] Result<Forecast> forecast_from_json(std::string_view text,
                                                  const std::string& name = "forecast");
// The same of a value of a larger document.
[[nodiscard]] Result<Forecast> forecast_from_json(const JsonValue& value, const std::string& name);
// What parse_json() has to take for the documents of this page.
[[nodiscard]] JsonLimits forecast_json_limits();

// The JSON Schema (draft 2020-12) that every such document follows, as docs/schemas/forecast.json holds it.
[[nodiscard]] std::string forecast_schema();

}  // namespace stepcast

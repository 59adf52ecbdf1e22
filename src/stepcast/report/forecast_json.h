// Writes a Forecast as JSON and reads it back: schema stepcast.forecast/1 (docs/schemas/forecast.json,
// docs/json.md).
//
//   const std::string text = forecast_json(forecast);
//   STEPCAST_ASSIGN(const Forecast same, forecast_from_json(text));
//
// Numbers have nine significant digits. Reading a document and writing it again gives the same text.
#pragma once

#include <string>
#include <string_view>

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/result.h"
#include "stepcast/report/fields/field_list.h"

namespace stepcast {

class JsonValue;
struct JsonLimits;

// Lists of these types are JSON objects with `key` as the name of a member and `value` as its value.
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

// The schema name, the command for error messages, and the format of numbers.
inline constexpr std::string_view kForecastSchema = "stepcast.forecast/1";
constexpr AnswerHead answer_head(const Forecast*) {
  return {kForecastSchema, "stepcast forecast", AnswerHead::Numbers::nine_digits};
}
namespace detail {
class FieldWriter;
// For documents that contain a forecast.
void fields(FieldWriter& writer, const Forecast& forecast);
}  // namespace detail

// The forecast as one JSON object.
[[nodiscard]] std::string forecast_json(const Forecast& forecast);

// Reads a forecast. Unknown keys are ignored, because a later version may have added them. `name` is the name
// of the text in errors. Errors give the line and the key: text that is not JSON, another schema, a missing
// key or a value of the wrong type, an index into rank_classes that does not exist, a negative step time, p10
// above p90.
[[nodiscard]] Result<Forecast> forecast_from_json(std::string_view text,
                                                  const std::string& name = "forecast");
// The same for a value inside a larger document.
[[nodiscard]] Result<Forecast> forecast_from_json(const JsonValue& value, const std::string& name);
// The limits with which parse_json() must parse a document that contains forecasts.
[[nodiscard]] JsonLimits forecast_json_limits();

// The JSON Schema (draft 2020-12) of these documents, the content of docs/schemas/forecast.json.
[[nodiscard]] std::string forecast_schema();

}  // namespace stepcast

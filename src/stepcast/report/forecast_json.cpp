#include "stepcast/report/forecast_json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <type_traits>
#include <variant>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/version.h"
#include "stepcast/report/detail/forecast_fields.h"

namespace stepcast {
namespace {

using detail::fields;

// Nine significant digits: more than any time here is known to, few enough to read.
double rounded(double value) {
  constexpr int kDigits = 9;
  constexpr double kFirstWithMore = 1e9;
  if (std::abs(value) < kFirstWithMore && value == std::trunc(value)) return value;
  std::array<char, 32> digits;
  const char* const end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::general, kDigits)
          .ptr;
  std::from_chars(digits.data(), end, value);  // infinities are read as such
  return value;
}

class Writer {
 public:
  template <class T>
  using Of = const T;
  explicit Writer(JsonWriter& json) : json_(json) {}

  template <class T>
  void operator()(std::string_view key, const T& member, std::string_view /*meaning*/) {
    json_.key(key);
    write(member);
  }

 private:
  void write(double value) { json_.value(rounded(value)); }
  void write(bool value) { json_.value(value); }
  void write(std::integral auto value) { json_.value(value); }
  void write(const std::string& text) { json_.value(text); }
  void write(EstimateSource source) { json_.value(to_string(source)); }
  template <class T>
  void write(const std::optional<T>& value) {
    if (value) {
      write(*value);
    } else {
      json_.null();
    }
  }
  void write(const NamedTimes& times) {
    json_.begin_object();
    for (const NamedTime& time : times) json_.field(time.key, rounded(time.time_ms));
    json_.end_object();
  }
  void write(const std::vector<Setting>& settings) {
    json_.begin_object();
    for (const Setting& setting : settings) {
      json_.key(setting.name);
      std::visit([&](const auto& value) { write(value); }, setting.value);
    }
    json_.end_object();
  }
  template <class T>
  void write(const std::vector<T>& items) {
    json_.begin_array();
    for (const T& item : items) write(item);
    json_.end_array();
  }
  template <class T>
    requires std::is_class_v<T>
  void write(const T& value) {
    json_.begin_object();
    fields(*this, value);
    json_.end_object();
  }

  JsonWriter& json_;
};

}  // namespace

void write_forecast(JsonWriter& json, const Forecast& forecast) {
  json.begin_object();
  json.field("schema", kForecastSchema).field("version", version());
  Writer writer{json};
  fields(writer, forecast);
  json.end_object();
}

std::string forecast_json(const Forecast& forecast) {
  JsonWriter json{JsonWriter::Layout::indented};
  write_forecast(json, forecast);
  return std::move(json).text();
}

}  // namespace stepcast

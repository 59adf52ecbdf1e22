#include "stepcast/cost/families/record_numbers.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

namespace stepcast {

Result<double> finite_number(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) return Error{fmt::format("`{}` is missing", key)};
  if (!value->is_number() || !std::isfinite(value->number()))
    return Error{fmt::format("`{}` is {} (must be a finite number)", key, value->kind_name())};
  return value->number();
}

Result<double> positive_number(const JsonValue& object, std::string_view key) {
  STEPCAST_ASSIGN(const double value, finite_number(object, key));
  if (!(value > 0)) return Error{fmt::format("`{}` is {:g} (must be above 0)", key, value)};
  return value;
}

Result<std::vector<double>> finite_numbers(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) return Error{fmt::format("`{}` is missing", key)};
  auto numbers = value->numbers();
  if (!numbers)
    return Error{fmt::format("`{}` is {} (must be an array of numbers)", key, value->kind_name())};
  for (const double number : *numbers) {
    if (!std::isfinite(number)) return Error{fmt::format("`{}` holds a number that is not finite", key)};
  }
  return *std::move(numbers);
}

Result<std::vector<double>> finite_numbers(const JsonValue& object, std::string_view key, std::size_t size) {
  STEPCAST_ASSIGN(std::vector<double> numbers, finite_numbers(object, key));
  if (numbers.size() != size)
    return Error{fmt::format("`{}` has {} numbers (must be {})", key, numbers.size(), size)};
  return numbers;
}

Result<std::vector<std::int32_t>> whole_numbers(const JsonValue& object, std::string_view key) {
  STEPCAST_ASSIGN(const std::vector<double> numbers, finite_numbers(object, key));
  std::vector<std::int32_t> out;
  out.reserve(numbers.size());
  for (const double number : numbers) {
    if (number != std::floor(number) || std::abs(number) > std::numeric_limits<std::int32_t>::max())
      return Error{fmt::format("`{}` holds {:g} (must be whole numbers)", key, number)};
    out.push_back(static_cast<std::int32_t>(number));
  }
  return out;
}

double short_double(float value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  double out = static_cast<double>(value);
  if (error == std::errc{}) std::from_chars(text, end, out);
  return out;
}

double rounded(double value, int digits) {
  if (!std::isfinite(value) || value == 0) return value;
  const std::string text = fmt::format("{:.{}g}", value, digits);
  double out = value;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace stepcast

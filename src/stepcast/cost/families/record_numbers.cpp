#include "stepcast/cost/families/record_numbers.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace stepcast {
namespace {

template <class Number>
void append(std::string& text, Number number) {
  char digits[32];
  const auto [end, unused] = std::to_chars(digits, digits + sizeof digits, number);
  if (!text.empty()) text += ' ';
  text.append(digits, end);
}

// The numbers of a text, separated by single blanks. None if it contains anything else.
template <class Number>
std::optional<std::vector<Number>> numbers_of(std::string_view text) {
  std::vector<Number> out;
  out.reserve(text.size() / 4 + 1);
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (!out.empty() && *at++ != ' ') return std::nullopt;
    Number number{};
    const auto [next, code] = std::from_chars(at, end, number);
    if (code != std::errc{}) return std::nullopt;
    out.push_back(number);
    at = next;
  }
  return out;
}

// The error of a text that does not parse.
Error no_numbers(std::string_view key) {
  return Error{fmt::format("`{}` is a text that holds more than numbers with one blank in between", key)};
}

}  // namespace

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
  auto numbers = value->is_text() ? numbers_of<double>(value->text()) : value->numbers();
  if (!numbers && value->is_text()) return no_numbers(key);
  if (!numbers)
    return Error{fmt::format("`{}` is {} (must be an array of numbers)", key, value->kind_name())};
  for (const double number : *numbers)
    if (!std::isfinite(number)) return Error{fmt::format("`{}` holds a number that is not finite", key)};
  return *std::move(numbers);
}

Result<std::vector<double>> finite_numbers(const JsonValue& object, std::string_view key, std::size_t size) {
  STEPCAST_ASSIGN(std::vector<double> numbers, finite_numbers(object, key));
  if (numbers.size() != size)
    return Error{fmt::format("`{}` has {} numbers (must be {})", key, numbers.size(), size)};
  return numbers;
}

Result<std::vector<std::int32_t>> whole_numbers(const JsonValue& object, std::string_view key) {
  if (const JsonValue* value = object.find(key); value != nullptr && value->is_text()) {
    auto numbers = numbers_of<std::int32_t>(value->text());
    if (!numbers) return no_numbers(key);
    return *std::move(numbers);
  }
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

void append_number(std::string& text, float number) { append(text, number); }
void append_number(std::string& text, std::int32_t number) { append(text, number); }

double rounded(double value, int digits) {
  if (!std::isfinite(value) || value == 0) return value;
  const std::string text = fmt::format("{:.{}g}", value, digits);
  double out = value;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace stepcast

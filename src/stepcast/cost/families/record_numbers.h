// Reading and writing of the numbers of model records. Errors name the key.
//
// A long list of numbers may be an array or a text, "1 2.5 -3": texts parse ten times as fast, and only when
// their record is used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast {

// A finite number. Error: missing or another value.
[[nodiscard]] Result<double> finite_number(const JsonValue& object, std::string_view key);
// A finite number above zero.
[[nodiscard]] Result<double> positive_number(const JsonValue& object, std::string_view key);
// A list of finite numbers, as an array or a text.
[[nodiscard]] Result<std::vector<double>> finite_numbers(const JsonValue& object, std::string_view key);
// The same with exactly `size` numbers.
[[nodiscard]] Result<std::vector<double>> finite_numbers(const JsonValue& object, std::string_view key,
                                                         std::size_t size);
// A list of 32-bit integers, as an array or a text.
[[nodiscard]] Result<std::vector<std::int32_t>> whole_numbers(const JsonValue& object, std::string_view key);

// The double with the same shortest text as this float: 0.1F becomes 0.1.
[[nodiscard]] double short_double(float value);
// Appends a number to a space-separated text, in shortest form.
void append_number(std::string& text, float number);
void append_number(std::string& text, std::int32_t number);
// Rounds to `digits` significant digits.
[[nodiscard]] double rounded(double value, int digits);

// Numbers as a JSON array; floats in shortest form.
template <class Container>
[[nodiscard]] JsonValue number_array(const Container& numbers) {
  JsonValue array = JsonValue::array();
  for (const auto number : numbers)
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(number)>, float>)
      array.add(JsonValue{short_double(number)});
    else
      array.add(JsonValue{static_cast<double>(number)});
  return array;
}

// Numbers as one text.
template <class Container>
[[nodiscard]] JsonValue number_text(const Container& numbers) {
  std::string text;
  for (const auto number : numbers) append_number(text, number);
  return JsonValue{std::move(text)};
}

}  // namespace stepcast

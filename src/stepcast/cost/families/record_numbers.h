// Reading and writing the numbers of model records. Errors name the key.
//
// A long list of numbers may be an array or one text, "1 2.5 -3": texts are read ten times as fast, and only when
// their record is asked for.
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

[[nodiscard]] Result<double> finite_number(const JsonValue& object, std::string_view key);
// The same for what has to be above zero.
[[nodiscard]] Result<double> positive_number(const JsonValue& object, std::string_view key);
[[nodiscard]] Result<std::vector<double>> finite_numbers(const JsonValue& object, std::string_view key);
// All of them; `size` of them exactly.
[[nodiscard]] Result<std::vector<double>> finite_numbers(const JsonValue& object, std::string_view key,
                                                         std::size_t size);
[[nodiscard]] Result<std::vector<std::int32_t>> whole_numbers(const JsonValue& object, std::string_view key);

// The double whose shortest text is the shortest text of this float: 0.1F is written as 0.1.
[[nodiscard]] double short_double(float value);
// Adds a number to a list as text.
void append_number(std::string& text, float number);
void append_number(std::string& text, std::int32_t number);
// Rounded to so many significant digits.
[[nodiscard]] double rounded(double value, int digits);

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

// The same as one text.
template <class Container>
[[nodiscard]] JsonValue number_text(const Container& numbers) {
  std::string text;
  for (const auto number : numbers) append_number(text, number);
  return JsonValue{std::move(text)};
}

}  // namespace stepcast

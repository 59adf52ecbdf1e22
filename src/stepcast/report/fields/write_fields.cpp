#include "stepcast/report/fields/write_fields.h"

#include <array>
#include <charconv>
#include <cmath>

namespace stepcast::detail {

double rounded_to_nine_digits(double value) {
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

void FieldWriter::tree(const JsonValue& value) {
  if (value.is_bool()) {
    json_.value(value.truth());
  } else if (value.is_number()) {
    json_.value(value.number());
  } else if (value.is_text()) {
    json_.value(value.text());
  } else if (value.is_array()) {
    json_.begin_array();
    for (const JsonValue& item : value.items()) tree(item);
    json_.end_array();
  } else if (value.is_object()) {
    json_.begin_object();
    for (const JsonValue::Member& member : value.members()) {
      json_.key(member.key);
      tree(member.value);
    }
    json_.end_object();
  } else {
    json_.null();
  }
}

}  // namespace stepcast::detail

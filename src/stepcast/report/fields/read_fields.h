// Reads the JSON of an answer by the list of its members (report/fields/field_list.h). Included only by the
// source file that contains the list. Unknown keys are ignored, because a later version may have added them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"
#include "stepcast/report/fields/field_list.h"

namespace stepcast {
namespace detail {

// Error: `root` is not a document of this schema. `printed_by` is the command that prints such documents.
[[nodiscard]] Status check_schema(const JsonValue& root, std::string_view schema, std::string_view printed_by,
                                  const std::string& name);
// The error for a value of the wrong type, and for a missing member; both name the line and the path of the
// member.
[[nodiscard]] Error wrong_field(const std::string& name, const JsonValue& found, const std::string& path,
                                std::string_view expected);
[[nodiscard]] Error missing_field(const std::string& name, const JsonValue& object, const std::string& path);
// Words as a choice: "measured, fitted or analytic".
[[nodiscard]] std::string either_of(const std::vector<std::string_view>& words);

// An archive for fields(): reads the members of one object. After the first error nothing more is read.
class FieldReader {
 public:
  FieldReader(const JsonValue& object, std::string path, const std::string& name)
      : object_(object), path_(std::move(path)), name_(name) {}

  // Called by the lists of members. Optional members and lists may be missing.
  template <class T>
  void operator()(std::string_view key, T& member, std::string_view /*meaning*/ = {},
                  const TableColumn& /*column*/ = {}) {
    if (error_) return;
    const JsonValue* value = object_.find(key);
    const std::string path = path_.empty() ? std::string{key} : path_ + "." + std::string{key};
    if (value != nullptr)
      read(*value, path, member);
    else if constexpr (!kIs<T, std::optional> && !ListField<T>)  // which may be missing
      error_ = missing_field(name_, object_, path);
  }

  // The first error, if there was one.
  [[nodiscard]] Status status() && {
    if (error_) return std::move(*error_);
    return Ok{};
  }

 private:
  void wrong(const JsonValue& found, const std::string& path, std::string_view expected) {
    error_ = wrong_field(name_, found, path, expected);
  }

  // Reads a value of a type that can be read; the types of computed values cannot.
  template <class T>
  void read(const JsonValue& value, const std::string& path, T& out) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!value.is_bool()) return wrong(value, path, "true or false");
      out = value.truth();
    } else if constexpr (std::is_integral_v<T>) {
      read_whole(value, path, out);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!value.is_number()) return wrong(value, path, "a number");
      out = value.number();
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!value.is_text()) return wrong(value, path, "a text");
      out = value.text();
    } else if constexpr (std::is_enum_v<T>) {
      read_word(value, path, out);
    } else if constexpr (kIs<T, std::optional>) {
      if (!value.is_null()) read(value, path, out.emplace());
    } else if constexpr (kIs<T, std::variant>) {
      read_variant(value, path, out);
    } else if constexpr (ObjectField<T>) {
      read_entries(value, path, out);
    } else if constexpr (ListField<T>) {
      if (!value.is_array()) return wrong(value, path, "a list");
      out.reserve(value.items().size());
      for (std::size_t i = 0; i < value.items().size() && !error_; ++i)
        read(value.items()[i], path + "[" + std::to_string(i) + "]", out.emplace_back());
    } else {
      if (!value.is_object()) return wrong(value, path, "an object");
      FieldReader inner{value, path, name_};
      fields(inner, out);
      error_ = std::move(inner.error_);
    }
  }

  // An integer that fits into the type and is exact as a double.
  template <class Integer>
  void read_whole(const JsonValue& value, const std::string& path, Integer& out) {
    constexpr double kExact = 9007199254740992.0;  // doubles represent integers exactly up to 2^53
    const double largest = std::min(kExact, static_cast<double>(std::numeric_limits<Integer>::max()));
    const double smallest = std::is_signed_v<Integer> ? -largest : 0.0;
    if (!value.is_number() || value.number() != std::floor(value.number()) || value.number() < smallest ||
        value.number() > largest) {
      return wrong(value, path, std::is_signed_v<Integer> ? "a whole number" : "a whole number from 0 on");
    }
    out = static_cast<Integer>(value.number());
  }

  // A word of an enumeration.
  template <class Enum>
  void read_word(const JsonValue& value, const std::string& path, Enum& out) {
    const std::vector<std::string_view> words = words_of<Enum>();
    const auto word = value.is_text() ? std::ranges::find(words, value.text()) : words.end();
    if (word == words.end()) return wrong(value, path, either_of(words));
    out = static_cast<Enum>(word - words.begin());
  }

  // A scalar of any of the variant's types.
  template <class... T>
  void read_variant(const JsonValue& value, const std::string& path, std::variant<T...>& out) {
    if (value.is_bool())
      out = value.truth();
    else if (value.is_number())
      out = value.number();
    else if (value.is_text())
      out = value.text();
    else
      wrong(value, path, "true, false, a number or a text");
  }

  // An object as a list of entries.
  template <class T>
  void read_entries(const JsonValue& value, const std::string& path, T& out) {
    using OneEntry = Entry<typename T::value_type>;
    if (!value.is_object()) return wrong(value, path, "an object of " + std::string{OneEntry::kWhat});
    for (const JsonValue::Member& member : value.members()) {
      typename T::value_type one{};
      one.*OneEntry::key = member.key;
      read(member.value, path + "." + member.key, one.*OneEntry::value);
      if (error_) return;
      out.push_back(std::move(one));
    }
  }

  const JsonValue& object_;
  std::string path_;
  const std::string& name_;
  std::optional<Error> error_;
};

}  // namespace detail

// Reads an answer. `name`: the name of the text in errors, which also give the line and the key.
template <class T>
[[nodiscard]] Result<T> read_answer(const JsonValue& root, std::string_view printed_by,
                                    const std::string& name) {
  STEPCAST_TRY(detail::check_schema(root, detail::head_of<T>().schema, printed_by, name));
  T answer;
  detail::FieldReader reader{root, "", name};
  fields(reader, answer);
  STEPCAST_TRY(std::move(reader).status());
  return answer;
}

}  // namespace stepcast

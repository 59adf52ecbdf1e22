// The JSON of an answer from the list of its fields (report/fields/fields.h). For the one source file that holds the list.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/version.h"
#include "stepcast/report/fields/fields.h"

// g++ 12 takes the address of a lambda that captures nothing for a use of its value.
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace stepcast {
namespace detail {

// Nine significant digits.
[[nodiscard]] double rounded_to_nine_digits(double value);

class FieldWriter {
 public:
  explicit FieldWriter(JsonWriter& json) : json_(json) {}

  template <class T>
  void operator()(std::string_view key, const T& member, std::string_view /*meaning*/ = {}) {
    if constexpr (kIs<T, Omittable>) {
      if (member.is_given) (*this)(key, member.value);
    } else {
      json_.key(key);
      write(member);
    }
  }

  template <class T>
  void write(const T& value) {
    if constexpr (TextField<T>) {
      json_.value(std::string_view{value});
    } else if constexpr (std::is_floating_point_v<T>) {
      json_.value(numbers_ == AnswerHead::Numbers::exact ? value : rounded_to_nine_digits(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
      json_.value(value);
    } else if constexpr (std::is_enum_v<T>) {
      json_.value(std::string_view{to_string(value)});
    } else if constexpr (kIs<T, std::optional>) {
      if (value)
        write(*value);
      else
        json_.null();
    } else if constexpr (FixedField<T>) {
      json_.fixed(value.value, T::kDecimals);
    } else if constexpr (std::is_same_v<T, Constant> || std::is_same_v<T, OneOf>) {
      json_.value(value.word);
    } else if constexpr (std::is_same_v<T, JsonValue>) {
      tree(value);
    } else if constexpr (kIs<T, Object>) {
      json_.begin_object();
      value.list(*this);
      json_.end_object();
    } else if constexpr (kIs<T, Each>) {
      json_.begin_array();
      for (const auto& item : value.items) listed(value.list, item);
      json_.end_array();
    } else if constexpr (kIs<T, EachUnder>) {
      json_.begin_object();
      for (const auto& item : value.items) {
        json_.key(value.key(item));
        listed(value.list, item);
      }
      json_.end_object();
    } else if constexpr (kIs<T, std::variant>) {
      std::visit([this](const auto& one) { this->write(one); }, value);
    } else if constexpr (ObjectField<T>) {
      json_.begin_object();
      for (const auto& one : value) {
        using OneEntry = Entry<std::remove_cvref_t<decltype(one)>>;
        (*this)(one.*OneEntry::key, one.*OneEntry::value);
      }
      json_.end_object();
    } else if constexpr (ListField<T>) {
      json_.begin_array();
      for (const auto& one : value) write(one);
      json_.end_array();
    } else if constexpr (UnitField<T>) {
      write(value.value());
    } else {
      object(value);
    }
  }

 private:
  template <class T>
  void object(const T& value) {
    constexpr AnswerHead kHead = head_of<T>();
    const AnswerHead::Numbers outer = numbers_;
    json_.begin_object();
    if constexpr (!kHead.schema.empty()) {
      numbers_ = kHead.numbers;
      if (!kHead.is_row) json_.field("schema", kHead.schema).field("version", version());
    }
    fields(*this, value);
    json_.end_object();
    numbers_ = outer;
  }
  template <class List, class Item>
  void listed(const List& list, const Item& item) {
    json_.begin_object();
    list(*this, item);
    json_.end_object();
  }
  void tree(const JsonValue& value);

  JsonWriter& json_;
  AnswerHead::Numbers numbers_ = AnswerHead::Numbers::exact;
};

}  // namespace detail

// As a value of a larger document.
template <class T>
void write_answer(JsonWriter& json, const T& answer) {
  detail::FieldWriter{json}.write(answer);
}

template <class T>
[[nodiscard]] std::string answer_json(const T& answer,
                                      JsonWriter::Layout layout = JsonWriter::Layout::indented) {
  JsonWriter json{layout};
  write_answer(json, answer);
  return std::move(json).text();
}

}  // namespace stepcast

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

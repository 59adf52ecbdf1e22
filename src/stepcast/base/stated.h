// Members of table rows that have no default: a row that does not state one does not compile.
//
//   struct OptimizerRule { Stated<std::string_view> name; Stated<int> moments; };
//   constexpr OptimizerRule kSgd{.name = "sgd", .moments = 0};
#pragma once

#include <concepts>
#include <utility>

namespace stepcast {

template <class T>
class Stated {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): rows state plain values
  constexpr Stated(T value) : value_(std::move(value)) {}
  // What a T is made of: a literal for a std::string_view, an array for a std::span.
  template <class U>
    requires(std::convertible_to<const U&, T> && !std::same_as<U, T> && !std::same_as<U, Stated>)
  // NOLINTNEXTLINE(google-explicit-constructor): rows state plain values
  constexpr Stated(const U& value) : value_(value) {}
  // NOLINTNEXTLINE(google-explicit-constructor): and readers get them
  constexpr operator const T&() const { return value_; }
  constexpr const T& operator*() const { return value_; }
  constexpr const T* operator->() const { return &value_; }

 private:
  T value_;
};

}  // namespace stepcast

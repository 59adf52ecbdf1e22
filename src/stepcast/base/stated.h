// Members without a default value: a table row that leaves one out does not compile.
//
//   struct OptimizerRule { Stated<std::string_view> name; Stated<int> moments; };
//   constexpr OptimizerRule kSgd{.name = "sgd", .moments = 0};
#pragma once

#include <concepts>
#include <utility>

namespace stepcast {

// Behaves like a const T, but has no default constructor.
template <class T>
class Stated {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): rows state plain values
  constexpr Stated(T value) : value_(std::move(value)) {}
  // Accepts types that convert to T: a literal for std::string_view, an array for std::span.
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

// Quantities with their unit in the type.
//
// A Quantity is a double tagged with a unit. Construction is explicit, the number comes out through value(),
// and only the products and quotients that this domain has are defined: adding bytes to seconds does not
// compile.
//
//   Bytes message{4096};
//   BytesPerSecond link = BytesPerSecond{300e9};
//   Microseconds t = message / link;          // Bytes / BytesPerSecond -> Microseconds
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace stepcast {

template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}
  [[nodiscard]] constexpr double value() const { return value_; }

  auto operator<=>(const Quantity&) const = default;

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    value_ *= factor;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity{a.value_ + b.value_}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity{a.value_ - b.value_}; }
  friend constexpr Quantity operator-(Quantity a) { return Quantity{-a.value_}; }
  friend constexpr Quantity operator*(Quantity a, double factor) { return Quantity{a.value_ * factor}; }
  friend constexpr Quantity operator*(double factor, Quantity a) { return Quantity{a.value_ * factor}; }
  friend constexpr Quantity operator/(Quantity a, double divisor) { return Quantity{a.value_ / divisor}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }

 private:
  double value_{};
};

using Microseconds = Quantity<struct MicrosecondsTag>;
using Bytes = Quantity<struct BytesTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using Flops = Quantity<struct FlopsTag>;                    // floating-point operations, a count
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag>;  // a rate

constexpr Microseconds operator/(Bytes amount, BytesPerSecond rate) {
  return Microseconds{amount.value() / rate.value() * 1e6};
}
constexpr Microseconds operator/(Flops amount, FlopsPerSecond rate) {
  return Microseconds{amount.value() / rate.value() * 1e6};
}
constexpr BytesPerSecond operator/(Bytes amount, Microseconds time) {
  return BytesPerSecond{amount.value() / time.value() * 1e6};
}
constexpr Bytes operator*(BytesPerSecond rate, Microseconds time) {
  return Bytes{rate.value() * time.value() * 1e-6};
}

// A recorded instant or length. Traces hold at most nanosecond decimals, so 64-bit nanoseconds keep an epoch
// time exactly where a double of microseconds would need more than 53 bits.
using Nanoseconds = std::chrono::nanoseconds;

constexpr Microseconds to_microseconds(Nanoseconds time) {
  return Microseconds{static_cast<double>(time.count()) * 1e-3};
}

namespace literals {
constexpr Microseconds operator""_us(long double v) { return Microseconds{static_cast<double>(v)}; }
constexpr Microseconds operator""_us(unsigned long long v) { return Microseconds{static_cast<double>(v)}; }
constexpr Microseconds operator""_ms(long double v) { return Microseconds{static_cast<double>(v) * 1e3}; }
constexpr Microseconds operator""_ms(unsigned long long v) {
  return Microseconds{static_cast<double>(v) * 1e3};
}
}  // namespace literals

}  // namespace stepcast

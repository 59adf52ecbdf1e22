// Quantities with their unit as a type.
//
// A Quantity is a double tagged with a unit. Construction is explicit, and value() returns the number. Only
// the operations that make sense are defined: adding bytes to seconds does not compile.
//
//   Bytes message{4096};
//   BytesPerSecond link = BytesPerSecond{300e9};
//   Microseconds t = message / link;          // Bytes / BytesPerSecond -> Microseconds
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace stepcast {

// `Tag` is the unit. All units have sums, differences, scaling by a number, and the ratio of two quantities.
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

// The units of the engine: microseconds, bytes, bytes per second.
using Microseconds = Quantity<struct MicrosecondsTag>;
using Bytes = Quantity<struct BytesTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using Flops = Quantity<struct FlopsTag>;                    // floating-point operations, a count
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag>;  // a rate

// Time to move an amount of data, or to compute a number of operations, at a rate. A rate of 0 gives infinity.
constexpr Microseconds operator/(Bytes amount, BytesPerSecond rate) {
  return Microseconds{amount.value() / rate.value() * 1e6};
}
constexpr Microseconds operator/(Flops amount, FlopsPerSecond rate) {
  return Microseconds{amount.value() / rate.value() * 1e6};
}
// Average rate of a transfer, and the amount that a rate moves in a time.
constexpr BytesPerSecond operator/(Bytes amount, Microseconds time) {
  return BytesPerSecond{amount.value() / time.value() * 1e6};
}
constexpr Bytes operator*(BytesPerSecond rate, Microseconds time) {
  return Bytes{rate.value() * time.value() * 1e-6};
}

// A recorded time or duration. Traces have at most nanosecond resolution; 64-bit nanoseconds hold an epoch
// time exactly, which would need more than the 53 bits of a double.
using Nanoseconds = std::chrono::nanoseconds;

// For durations and differences of times; a converted epoch time loses its last digits.
constexpr Microseconds to_microseconds(Nanoseconds time) {
  return Microseconds{static_cast<double>(time.count()) * 1e-3};
}

// 12.5_us, 3_ms: Microseconds from either unit.
// User-defined literals, to be used with `using namespace stepcast::literals`.
namespace literals {
constexpr Microseconds operator""_us(long double v) { return Microseconds{static_cast<double>(v)}; }
constexpr Microseconds operator""_us(unsigned long long v) { return Microseconds{static_cast<double>(v)}; }
constexpr Microseconds operator""_ms(long double v) { return Microseconds{static_cast<double>(v) * 1e3}; }
constexpr Microseconds operator""_ms(unsigned long long v) {
  return Microseconds{static_cast<double>(v) * 1e3};
}
}  // namespace literals

}  // namespace stepcast

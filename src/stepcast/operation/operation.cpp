#include "stepcast/operation/operation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>

#include "stepcast/operation/detail/operation_names.h"
#include "stepcast/operation/detail/shape_traits.h"

namespace stepcast {
namespace {

// Bits of a value for hashing.
template <class Value>
std::uint64_t bits_of(Value value) {
  if constexpr (std::is_floating_point_v<Value>)
    return std::bit_cast<std::uint64_t>(static_cast<double>(value) + 0.0);  // -0.0 equals 0.0
  else
    return static_cast<std::uint64_t>(value);
}

// The finaliser of splitmix64 over every value. Inlined, since every cached price is looked up by this hash.
[[gnu::always_inline]] inline void mix(std::uint64_t& state, std::uint64_t value) {
  state += value + 0x9e3779b97f4a7c15ULL;
  state = (state ^ (state >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  state = (state ^ (state >> 27U)) * 0x94d049bb133111ebULL;
  state ^= state >> 31U;
}

// Output extent of a convolution. In doubles, since extents from files may be arbitrarily large.
std::int64_t out_extent(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                        std::int64_t dilation) {
  if (stride <= 0) return 0;
  const double room = static_cast<double>(in) + 2 * static_cast<double>(padding) -
                      static_cast<double>(dilation) * (static_cast<double>(kernel) - 1) - 1;
  constexpr double kLargest = 1e18;
  return room < 0 ? 0
                  : static_cast<std::int64_t>(
                        std::min(std::floor(room / static_cast<double>(stride)) + 1, kLargest));
}

// Describes the first field below its minimum; empty: none.
template <class Shape>
std::string field_problem(const Shape& shape) {
  std::string problem;
  detail::for_each_field(shape, [&](const auto& field) {
    if constexpr (!std::is_enum_v<std::decay_t<decltype(shape.*field.member)>>) {
      const auto value = static_cast<double>(shape.*field.member);
      // The negation also catches NaN.
      if (problem.empty() && field.least != kAnyValue && !(value >= field.least))
        problem = fmt::format("{} = {:g} (must be at least {:g})", field.name, value, field.least);
    }
  });
  return problem;
}

}  // namespace

std::string_view to_string(Direction direction) { return detail::kDirectionNames[direction]; }
std::string_view to_string(GemmLayout layout) { return detail::kGemmLayoutNames[layout]; }
std::string_view to_string(AttentionKernel kernel) { return detail::kAttentionKernelNames[kernel]; }
std::string_view to_string(NormKind kind) { return detail::kNormNames[kind]; }
std::string_view to_string(SoftmaxKind kind) { return detail::kSoftmaxNames[kind]; }
std::string_view to_string(ElementwiseFunction function) { return detail::kElementwiseNames[function]; }
std::string_view to_string(MovementKind kind) { return detail::kMovementNames[kind]; }

std::int64_t ConvolutionShape::out_height() const {
  // The single row of a one-dimensional convolution is not padded.
  if (height == 1 && kernel_height == 1) return 1;
  return out_extent(height, kernel_height, stride, padding, dilation);
}

std::int64_t ConvolutionShape::out_width() const {
  return out_extent(width, kernel_width, stride, padding, dilation);
}

Work& operator+=(Work& work, const Work& more) {
  work.flops += more.flops;
  work.bytes_read += more.bytes_read;
  work.bytes_written += more.bytes_written;
  work.matrix = work.matrix || more.matrix;
  work.kernels += more.kernels;
  return work;
}

Work work_of(const Operation& operation) {
  const detail::AskedWork asked{operation.dtype, operation.direction};
  return std::visit([&](const auto& s) { return detail::TraitsOf<decltype(s)>::work(s, asked); },
                    operation.shape);
}

std::string_view family_of(const Operation& operation) {
  return std::visit([](const auto& s) { return detail::TraitsOf<decltype(s)>::family(s); }, operation.shape);
}

KernelClass kernel_class_of(const Operation& operation) {
  return std::visit([](const auto& s) { return detail::TraitsOf<decltype(s)>::kernel_class(s); },
                    operation.shape);
}

std::string describe(const Operation& operation) {
  const std::string shape =
      std::visit([](const auto& s) { return detail::TraitsOf<decltype(s)>::describe(s); }, operation.shape);
  return fmt::format("{} {} {} {}", family_of(operation), to_string(operation.dtype),
                     to_string(operation.direction), shape);
}

std::string shape_problem(const Operation& operation) {
  return std::visit(
      [](const auto& s) {
        std::string problem = field_problem(s);
        return problem.empty() ? detail::TraitsOf<decltype(s)>::problem(s) : problem;
      },
      operation.shape);
}

std::size_t hash_of(const Operation& operation) {
  std::uint64_t state = operation.shape.index();
  mix(state, static_cast<std::uint64_t>(operation.dtype));
  mix(state, static_cast<std::uint64_t>(operation.direction));
  std::visit(
      [&](const auto& shape) {
        detail::for_each_field(shape, [&](const auto& field) { mix(state, bits_of(shape.*field.member)); });
      },
      operation.shape);
  return static_cast<std::size_t>(state);
}

}  // namespace stepcast

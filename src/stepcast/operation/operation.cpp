#include "stepcast/operation/operation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>

#include "stepcast/operation/detail/operation_names.h"
#include "stepcast/operation/shape_fields.h"

namespace stepcast {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

template <class Value>
std::uint64_t bits_of(Value value) {
  if constexpr (std::is_floating_point_v<Value>) {
    return std::bit_cast<std::uint64_t>(static_cast<double>(value) + 0.0);  // -0.0 equals 0.0
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

// The finaliser of splitmix64 on every value.
void mix(std::uint64_t& state, std::uint64_t value) {
  state += value + 0x9e3779b97f4a7c15ULL;
  state = (state ^ (state >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  state = (state ^ (state >> 27U)) * 0x94d049bb133111ebULL;
  state ^= state >> 31U;
}

// In doubles: extents from files may be as large as they like.
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

std::string describe_shape(const GemmShape& s) {
  std::string out = s.batch == 1 ? std::string{} : fmt::format("batch={} ", s.batch);
  out += fmt::format("m={} n={} k={}", s.m, s.n, s.k);
  if (s.bias) out += " bias";
  if (s.accumulates) out += " accumulates";
  if (s.layout != GemmLayout::any) out += fmt::format(" {}", to_string(s.layout));
  if (s.output != DType::unknown) out += fmt::format(" output={}", to_string(s.output));
  return out;
}
std::string describe_shape(const AttentionShape& s) {
  std::string out = fmt::format("batch={} query_length={} key_length={} heads={}", s.batch, s.query_length,
                                s.key_length, s.heads);
  if (s.key_value_heads != 0 && s.key_value_heads != s.heads)
    out += fmt::format(" key_value_heads={}", s.key_value_heads);
  out += fmt::format(" head_dim={}", s.head_dim);
  if (s.value_head_dim != 0 && s.value_head_dim != s.head_dim)
    out += fmt::format(" value_head_dim={}", s.value_head_dim);
  if (s.causal) out += " causal";
  if (s.window != 0) out += fmt::format(" window={}", s.window);
  if (s.kernel != AttentionKernel::any) out += fmt::format(" {}", to_string(s.kernel));
  return out;
}
std::string describe_shape(const ConvolutionShape& s) {
  return fmt::format(
      "batch={} channels={}->{} image={}x{} kernel={}x{} stride={} padding={} dilation={} groups={}", s.batch,
      s.in_channels, s.out_channels, s.height, s.width, s.kernel_height, s.kernel_width, s.stride, s.padding,
      s.dilation, s.groups);
}
std::string describe_shape(const LookupShape& s) {
  std::string out = fmt::format("tables={} rows={} dim={} bags={} pooling={:g}", s.tables, s.rows, s.dim,
                                s.bags, s.pooling);
  if (s.distinct_fraction >= 0) out += fmt::format(" distinct_fraction={:g}", s.distinct_fraction);
  if (s.fused_update) out += " fused_update";
  return out;
}
std::string describe_shape(const NormShape& s) {
  return fmt::format("rows={} cols={}{}", s.rows, s.cols, s.fused ? "" : " unfused");
}
std::string describe_shape(const SoftmaxShape& s) {
  return fmt::format("{}rows={} cols={}", s.kind == SoftmaxKind::log_softmax ? "log " : "", s.rows, s.cols);
}
std::string describe_shape(const CrossEntropyShape& s) {
  return fmt::format("rows={} classes={}{}", s.rows, s.classes, s.fused ? " fused" : "");
}
std::string describe_shape(const ElementwiseShape& s) {
  std::string out = fmt::format("{} elements={} reads={:g} writes={:g} flops_per_element={:g}",
                                to_string(s.function), s.elements, s.reads, s.writes, s.flops_per_element);
  if (s.inner != 0) out += fmt::format(" inner={}", s.inner);
  return out;
}
std::string describe_shape(const MovementShape& s) {
  return fmt::format("elements={}{}", s.elements, s.inner == 0 ? "" : fmt::format(" inner={}", s.inner));
}
std::string describe_shape(const ReductionShape& s) { return fmt::format("rows={} cols={}", s.rows, s.cols); }
std::string describe_shape(const OptimizerShape& s) {
  constexpr std::string_view kImplementation[] = {"fused", "foreach", "for_loop"};
  return fmt::format("{} {} parameters={} tensors={} bytes_per_parameter={:g}+{:g}", to_string(s.kind),
                     kImplementation[static_cast<std::size_t>(s.implementation)], s.parameters, s.tensors,
                     s.bytes_read_per_parameter, s.bytes_written_per_parameter);
}
std::string describe_shape(const TransferShape& s) {
  return fmt::format("bytes={}{}", s.bytes, s.pinned ? "" : " pageable");
}
std::string describe_shape(const SparseShape& s) {
  std::string out =
      fmt::format("rows={} inner={} cols={} nonzeros={:.0f}", s.rows, s.inner, s.cols, s.nonzeros);
  if (s.reuse > 0) out += fmt::format(" reuse={:g}", s.reuse);
  if (s.sparse_result) out += " sparse_result";
  return out;
}
std::string describe_shape(const AmountShape& s) {
  return fmt::format("{} flops={:.0f} bytes={:.0f}+{:.0f}", to_string(s.kernel_class), s.flops, s.bytes_read,
                     s.bytes_written);
}

// The first field that is less than it can be.
template <class Shape>
std::string field_problem(const Shape& shape) {
  std::string problem;
  for_each_field(shape, [&](const auto& field) {
    if constexpr (!std::is_enum_v<std::decay_t<decltype(shape.*field.member)>>) {
      const auto value = static_cast<double>(shape.*field.member);
      // The negation catches what is not a number.
      if (problem.empty() && field.least != kAnyValue && !(value >= field.least)) {
        problem = fmt::format("{} = {:g} (must be at least {:g})", field.name, value, field.least);
      }
    }
  });
  return problem;
}

// What no single field tells.
template <class Shape>
std::string relation_problem(const Shape& /*shape*/) {
  return {};
}
std::string relation_problem(const AttentionShape& s) {
  if (s.key_value_heads == 0 || s.heads % s.key_value_heads == 0) return {};
  return fmt::format("key_value_heads = {} (must divide heads = {})", s.key_value_heads, s.heads);
}
std::string relation_problem(const ConvolutionShape& s) {
  if (s.in_channels % s.groups != 0 || s.out_channels % s.groups != 0)
    return fmt::format("groups = {} (must divide in_channels = {} and out_channels = {})", s.groups,
                       s.in_channels, s.out_channels);
  if (s.out_height() < 1 || s.out_width() < 1)
    return fmt::format("kernel {}x{} with dilation {} does not fit the padded image {}x{} (padding {})",
                       s.kernel_height, s.kernel_width, s.dilation, s.height, s.width, s.padding);
  return {};
}
std::string relation_problem(const LookupShape& s) {
  if (s.distinct_fraction <= 1) return {};
  return fmt::format("distinct_fraction = {:g} (must be at most 1)", s.distinct_fraction);
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

std::string_view family_of(const Operation& operation) {
  return std::visit(
      Overloaded{
          [](const GemmShape& s) -> std::string_view { return s.batch == 1 ? "gemm" : "batched_gemm"; },
          [](const AttentionShape&) -> std::string_view { return "attention"; },
          [](const ConvolutionShape&) -> std::string_view { return "convolution"; },
          [](const LookupShape&) -> std::string_view { return "embedding_lookup"; },
          [](const NormShape& s) {
            if (s.kind == NormKind::rms_norm && !s.fused) return std::string_view{"rms_norm_unfused"};
            return to_string(s.kind);
          },
          [](const SoftmaxShape& s) -> std::string_view {
            return s.kind == SoftmaxKind::causal_masked ? "causal_softmax" : "softmax";
          },
          [](const CrossEntropyShape&) -> std::string_view { return "cross_entropy"; },
          [](const ElementwiseShape& s) { return detail::family_of_elementwise(s.function); },
          [](const MovementShape& s) { return to_string(s.kind); },
          [](const ReductionShape&) -> std::string_view { return "reduction"; },
          [](const OptimizerShape&) -> std::string_view { return "optimizer"; },
          [](const TransferShape& s) { return detail::kTransferNames[s.kind]; },
          [](const SparseShape&) -> std::string_view { return "sparse"; },
          [](const AmountShape&) -> std::string_view { return "fused"; },
      },
      operation.shape);
}

KernelClass kernel_class_of(const Operation& operation) {
  return std::visit(Overloaded{
                        [](const GemmShape&) { return KernelClass::gemm; },
                        [](const AttentionShape&) { return KernelClass::attention; },
                        [](const ConvolutionShape&) { return KernelClass::gemm; },
                        [](const LookupShape&) { return KernelClass::embedding; },
                        [](const NormShape&) { return KernelClass::normalization; },
                        [](const SoftmaxShape&) { return KernelClass::normalization; },
                        [](const CrossEntropyShape&) { return KernelClass::normalization; },
                        [](const ElementwiseShape&) { return KernelClass::elementwise; },
                        [](const MovementShape& s) {
                          if (s.routes_tokens) return KernelClass::expert_routing;
                          const bool indexed =
                              s.kind == MovementKind::gather || s.kind == MovementKind::scatter;
                          return indexed ? KernelClass::embedding : KernelClass::memory;
                        },
                        [](const ReductionShape&) { return KernelClass::reduction; },
                        [](const OptimizerShape&) { return KernelClass::elementwise; },
                        [](const TransferShape&) { return KernelClass::memory; },
                        [](const SparseShape&) { return KernelClass::gemm; },
                        [](const AmountShape& s) { return s.kernel_class; },
                    },
                    operation.shape);
}

std::string describe(const Operation& operation) {
  const std::string shape = std::visit([](const auto& s) { return describe_shape(s); }, operation.shape);
  return fmt::format("{} {} {} {}", family_of(operation), to_string(operation.dtype),
                     to_string(operation.direction), shape);
}

std::string shape_problem(const Operation& operation) {
  return std::visit(
      [](const auto& s) {
        std::string problem = field_problem(s);
        return problem.empty() ? relation_problem(s) : problem;
      },
      operation.shape);
}

std::size_t hash_of(const Operation& operation) {
  std::uint64_t state = operation.shape.index();
  mix(state, static_cast<std::uint64_t>(operation.dtype));
  mix(state, static_cast<std::uint64_t>(operation.direction));
  std::visit(
      [&](const auto& shape) {
        for_each_field(shape, [&](const auto& field) { mix(state, bits_of(shape.*field.member)); });
      },
      operation.shape);
  return static_cast<std::size_t>(state);
}

}  // namespace stepcast

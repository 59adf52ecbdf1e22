#include "stepcast/operation/operation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <type_traits>

#include <fmt/format.h>

namespace stepcast {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

// Every member of every shape, in the order of its declaration: what makes operations equal is what is
// hashed.
auto members(const GemmShape& s) {
  return std::tie(s.batch, s.m, s.n, s.k, s.bias, s.accumulates, s.layout, s.output);
}
auto members(const AttentionShape& s) {
  return std::tie(s.batch, s.query_length, s.key_length, s.heads, s.key_value_heads, s.head_dim,
                  s.value_head_dim, s.causal, s.window, s.kernel);
}
auto members(const ConvolutionShape& s) {
  return std::tie(s.batch, s.in_channels, s.out_channels, s.height, s.width, s.kernel_height, s.kernel_width,
                  s.stride, s.padding, s.dilation, s.groups);
}
auto members(const LookupShape& s) {
  return std::tie(s.tables, s.rows, s.dim, s.bags, s.pooling, s.distinct_fraction, s.fused_update);
}
auto members(const NormShape& s) { return std::tie(s.kind, s.rows, s.cols, s.fused); }
auto members(const SoftmaxShape& s) { return std::tie(s.kind, s.rows, s.cols); }
auto members(const CrossEntropyShape& s) { return std::tie(s.rows, s.classes, s.fused); }
auto members(const ElementwiseShape& s) {
  return std::tie(s.function, s.elements, s.reads, s.writes, s.flops_per_element, s.inner);
}
auto members(const MovementShape& s) { return std::tie(s.kind, s.elements, s.inner); }
auto members(const ReductionShape& s) { return std::tie(s.rows, s.cols); }
auto members(const OptimizerShape& s) {
  return std::tie(s.kind, s.implementation, s.parameters, s.tensors, s.bytes_read_per_parameter,
                  s.bytes_written_per_parameter);
}
auto members(const TransferShape& s) { return std::tie(s.kind, s.bytes, s.pinned); }
auto members(const SparseShape& s) {
  return std::tie(s.rows, s.inner, s.cols, s.nonzeros, s.reuse, s.sparse_result);
}
auto members(const AmountShape& s) {
  return std::tie(s.flops, s.bytes_read, s.bytes_written, s.matrix, s.kernel_class);
}

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

std::string_view memcpy_name(MemcpyKind kind) {
  switch (kind) {
    case MemcpyKind::none: return "memset";
    case MemcpyKind::host_to_device: return "memcpy_h2d";
    case MemcpyKind::device_to_host: return "memcpy_d2h";
    case MemcpyKind::device_to_device: return "memcpy_d2d";
    case MemcpyKind::host_to_host: return "memcpy_h2h";
    case MemcpyKind::peer: return "memcpy_peer";
  }
  return "memset";
}

std::string_view family_of_elementwise(ElementwiseFunction function) {
  switch (function) {
    case ElementwiseFunction::other:
    case ElementwiseFunction::add:
    case ElementwiseFunction::multiply:
    case ElementwiseFunction::divide:
    case ElementwiseFunction::power:
    case ElementwiseFunction::add_scalar:
    case ElementwiseFunction::multiply_scalar:
    case ElementwiseFunction::divide_scalar:
    case ElementwiseFunction::power_scalar: return "elementwise";
    default: return to_string(function);
  }
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

struct Extent {
  std::string_view name;
  double value;
  double least;
};

std::string first_problem(std::initializer_list<Extent> extents) {
  for (const Extent& extent : extents) {
    if (!(extent.value >= extent.least))  // the negation catches what is not a number
      return fmt::format("{} = {:g} (must be at least {:g})", extent.name, extent.value, extent.least);
  }
  return {};
}

double number(std::int64_t value) { return static_cast<double>(value); }

std::string problem_of(const GemmShape& s) {
  return first_problem(
      {{"batch", number(s.batch), 0}, {"m", number(s.m), 0}, {"n", number(s.n), 0}, {"k", number(s.k), 0}});
}
std::string problem_of(const AttentionShape& s) {
  std::string problem = first_problem({{"batch", number(s.batch), 0},
                                       {"query_length", number(s.query_length), 0},
                                       {"key_length", number(s.key_length), 0},
                                       {"heads", number(s.heads), 1},
                                       {"key_value_heads", number(s.key_value_heads), 0},
                                       {"head_dim", number(s.head_dim), 1},
                                       {"value_head_dim", number(s.value_head_dim), 0},
                                       {"window", number(s.window), 0}});
  if (problem.empty() && s.key_value_heads > 0 && s.heads % s.key_value_heads != 0)
    problem = fmt::format("key_value_heads = {} (must divide heads = {})", s.key_value_heads, s.heads);
  return problem;
}
std::string problem_of(const ConvolutionShape& s) {
  std::string problem = first_problem({{"batch", number(s.batch), 0},
                                       {"in_channels", number(s.in_channels), 1},
                                       {"out_channels", number(s.out_channels), 1},
                                       {"height", number(s.height), 1},
                                       {"width", number(s.width), 1},
                                       {"kernel_height", number(s.kernel_height), 1},
                                       {"kernel_width", number(s.kernel_width), 1},
                                       {"stride", number(s.stride), 1},
                                       {"padding", number(s.padding), 0},
                                       {"dilation", number(s.dilation), 1},
                                       {"groups", number(s.groups), 1}});
  if (!problem.empty()) return problem;
  if (s.in_channels % s.groups != 0 || s.out_channels % s.groups != 0)
    return fmt::format("groups = {} (must divide in_channels = {} and out_channels = {})", s.groups,
                       s.in_channels, s.out_channels);
  if (s.out_height() < 1 || s.out_width() < 1)
    return fmt::format("kernel {}x{} with dilation {} does not fit the padded image {}x{} (padding {})",
                       s.kernel_height, s.kernel_width, s.dilation, s.height, s.width, s.padding);
  return {};
}
std::string problem_of(const LookupShape& s) {
  std::string problem = first_problem({{"tables", number(s.tables), 0},
                                       {"rows", number(s.rows), 0},
                                       {"dim", number(s.dim), 1},
                                       {"bags", number(s.bags), 0},
                                       {"pooling", s.pooling, 0}});
  if (problem.empty() && !(s.distinct_fraction <= 1))
    problem = fmt::format("distinct_fraction = {:g} (must be at most 1)", s.distinct_fraction);
  return problem;
}
std::string problem_of(const NormShape& s) {
  return first_problem({{"rows", number(s.rows), 0}, {"cols", number(s.cols), 0}});
}
std::string problem_of(const SoftmaxShape& s) {
  return first_problem({{"rows", number(s.rows), 0}, {"cols", number(s.cols), 0}});
}
std::string problem_of(const CrossEntropyShape& s) {
  return first_problem({{"rows", number(s.rows), 0}, {"classes", number(s.classes), 0}});
}
std::string problem_of(const ElementwiseShape& s) {
  return first_problem({{"elements", number(s.elements), 0},
                        {"reads", s.reads, 0},
                        {"writes", s.writes, 0},
                        {"flops_per_element", s.flops_per_element, 0},
                        {"inner", number(s.inner), 0}});
}
std::string problem_of(const MovementShape& s) {
  return first_problem({{"elements", number(s.elements), 0}, {"inner", number(s.inner), 0}});
}
std::string problem_of(const ReductionShape& s) {
  return first_problem({{"rows", number(s.rows), 0}, {"cols", number(s.cols), 0}});
}
std::string problem_of(const OptimizerShape& s) {
  return first_problem({{"parameters", number(s.parameters), 0},
                        {"tensors", number(s.tensors), 1},
                        {"bytes_read_per_parameter", s.bytes_read_per_parameter, 0},
                        {"bytes_written_per_parameter", s.bytes_written_per_parameter, 0}});
}
std::string problem_of(const TransferShape& s) { return first_problem({{"bytes", number(s.bytes), 0}}); }
std::string problem_of(const SparseShape& s) {
  return first_problem({{"rows", number(s.rows), 0},
                        {"inner", number(s.inner), 0},
                        {"cols", number(s.cols), 0},
                        {"nonzeros", s.nonzeros, 0},
                        {"reuse", s.reuse, 0}});
}
std::string problem_of(const AmountShape& s) {
  return first_problem(
      {{"flops", s.flops, 0}, {"bytes_read", s.bytes_read, 0}, {"bytes_written", s.bytes_written, 0}});
}

}  // namespace

std::string_view to_string(Direction direction) {
  switch (direction) {
    case Direction::forward: return "forward";
    case Direction::backward: return "backward";
    case Direction::input_gradient: return "input_gradient";
    case Direction::weight_gradient: return "weight_gradient";
  }
  return "forward";
}

std::string_view to_string(GemmLayout layout) {
  switch (layout) {
    case GemmLayout::any: return "any";
    case GemmLayout::tn: return "tn";
    case GemmLayout::nn: return "nn";
    case GemmLayout::nt: return "nt";
    case GemmLayout::tt: return "tt";
  }
  return "any";
}

std::string_view to_string(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::any: return "any";
    case AttentionKernel::flash1: return "flash1";
    case AttentionKernel::flash2: return "flash2";
    case AttentionKernel::flash3: return "flash3";
    case AttentionKernel::efficient: return "efficient";
  }
  return "any";
}

std::string_view to_string(NormKind kind) {
  switch (kind) {
    case NormKind::layer_norm: return "layer_norm";
    case NormKind::rms_norm: return "rms_norm";
    case NormKind::batch_norm: return "batch_norm";
    case NormKind::group_norm: return "group_norm";
  }
  return "layer_norm";
}

std::string_view to_string(SoftmaxKind kind) {
  switch (kind) {
    case SoftmaxKind::plain: return "softmax";
    case SoftmaxKind::log_softmax: return "log_softmax";
    case SoftmaxKind::causal_masked: return "causal_softmax";
  }
  return "softmax";
}

std::string_view to_string(ElementwiseFunction function) {
  switch (function) {
    case ElementwiseFunction::other: return "elementwise";
    case ElementwiseFunction::add: return "add";
    case ElementwiseFunction::multiply: return "multiply";
    case ElementwiseFunction::divide: return "divide";
    case ElementwiseFunction::power: return "power";
    case ElementwiseFunction::add_scalar: return "add_scalar";
    case ElementwiseFunction::multiply_scalar: return "multiply_scalar";
    case ElementwiseFunction::divide_scalar: return "divide_scalar";
    case ElementwiseFunction::power_scalar: return "power_scalar";
    case ElementwiseFunction::cast: return "cast";
    case ElementwiseFunction::masked_fill: return "masked_fill";
    case ElementwiseFunction::relu: return "relu";
    case ElementwiseFunction::gelu: return "gelu";
    case ElementwiseFunction::tanh: return "tanh";
    case ElementwiseFunction::sigmoid: return "sigmoid";
    case ElementwiseFunction::silu: return "silu";
    case ElementwiseFunction::gated_silu: return "gated_silu";
    case ElementwiseFunction::squared_relu: return "squared_relu";
    case ElementwiseFunction::exponential: return "exponential";
    case ElementwiseFunction::dropout: return "dropout";
    case ElementwiseFunction::rotary: return "rotary";
    case ElementwiseFunction::residual_add: return "residual_add";
    case ElementwiseFunction::rotary_unfused: return "rotary_unfused";
  }
  return "elementwise";
}

std::string_view to_string(MovementKind kind) {
  switch (kind) {
    case MovementKind::copy: return "copy";
    case MovementKind::transpose: return "transpose";
    case MovementKind::concatenate: return "concatenate";
    case MovementKind::split: return "split";
    case MovementKind::gather: return "gather";
    case MovementKind::scatter: return "scatter";
    case MovementKind::fill: return "fill";
  }
  return "copy";
}

std::string_view to_string(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd: return "sgd";
    case OptimizerKind::momentum_sgd: return "momentum_sgd";
    case OptimizerKind::adam: return "adam";
    case OptimizerKind::adamw: return "adamw";
    case OptimizerKind::adagrad: return "adagrad";
    case OptimizerKind::lamb: return "lamb";
  }
  return "adam";
}

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
          [](const ElementwiseShape& s) { return family_of_elementwise(s.function); },
          [](const MovementShape& s) { return to_string(s.kind); },
          [](const ReductionShape&) -> std::string_view { return "reduction"; },
          [](const OptimizerShape&) -> std::string_view { return "optimizer"; },
          [](const TransferShape& s) { return memcpy_name(s.kind); },
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
  return std::visit([](const auto& s) { return problem_of(s); }, operation.shape);
}

std::size_t hash_of(const Operation& operation) {
  std::uint64_t state = operation.shape.index();
  mix(state, static_cast<std::uint64_t>(operation.dtype));
  mix(state, static_cast<std::uint64_t>(operation.direction));
  std::visit(
      [&state](const auto& shape) {
        std::apply([&state](const auto&... member) { (mix(state, bits_of(member)), ...); }, members(shape));
      },
      operation.shape);
  return static_cast<std::size_t>(state);
}

}  // namespace stepcast

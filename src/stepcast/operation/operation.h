// An Operation describes GPU work: kind, shape, element types and direction, independent of device and
// duration. cost/ prices it on a device; workload/ and trace/ produce it.
//
//   const Operation up = gemm({.m = 8192, .n = 16384, .k = 4096}, DType::bf16);
//   const Work work = work_of(up);
//   work.flops                2 * 8192 * 16384 * 4096
//   work.bytes()              2 * (8192 * 4096 + 4096 * 16384 + 8192 * 16384)
//
// `direction` is the part of training: `backward` is the whole backward of the operation (both gradients of a
// GEMM), so one Operation per direction describes an operator of a framework completely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "stepcast/base/quantity.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/operation/kernel_class.h"

namespace stepcast {

// The part of training that an operation belongs to.
enum class Direction : std::uint8_t {
  forward,
  backward,         // all gradients
  input_gradient,   // GEMM and convolution: only the gradient of the activations
  weight_gradient,  // GEMM and convolution: only the gradient of the weights
};
// "forward", "backward", ...: the names in records and reports, like every to_string() below.
[[nodiscard]] std::string_view to_string(Direction direction);

// Layout of the operands of a GEMM in BLAS notation: TN is the forward of a linear layer, NN its input
// gradient, NT its weight gradient. `any`: unknown.
enum class GemmLayout : std::uint8_t { any, tn, nn, nt, tt };
[[nodiscard]] std::string_view to_string(GemmLayout layout);

// `batch` times C[m, n] = A[m, k] B[k, n].
struct GemmShape {
  std::int64_t batch = 1;
  // Rows of A and C, columns of B and C, and the summed extent.
  std::int64_t m = 0, n = 0, k = 0;
  bool bias = false;         // adds a vector of n to every row; backward: reduces it
  bool accumulates = false;  // adds into C, as weight gradients do into an fp32 buffer
  GemmLayout layout = GemmLayout::any;
  DType output = DType::unknown;  // element type of C; unknown: the type of the operands
  auto operator<=>(const GemmShape&) const = default;
};

// Implementation of fused attention; they differ by a factor of two on one device.
enum class AttentionKernel : std::uint8_t {
  any,        // unknown or unspecified
  flash1,     // FlashAttention before July 2023, and Triton kernels of that time
  flash2,     // FlashAttention-2; PyTorch >= 2.2
  flash3,     // FlashAttention-3 and cuDNN on Hopper
  efficient,  // xFormers memory-efficient attention
};
[[nodiscard]] std::string_view to_string(AttentionKernel kernel);

// softmax(Q K^T) V without scores in memory. Lengths are in tokens.
struct AttentionShape {
  std::int64_t batch = 1;
  // Queries may be fewer than keys; the last query is aligned with the last key.
  std::int64_t query_length = 0, key_length = 0;
  std::int64_t heads = 0, key_value_heads = 0;  // key_value_heads 0: heads
  std::int64_t head_dim = 0;                    // of queries and keys
  std::int64_t value_head_dim = 0;              // of values; 0: head_dim
  bool causal = true;                           // a query attends only to keys up to its position
  std::int64_t window = 0;                      // tokens that a query attends to at most; 0: all
  AttentionKernel kernel = AttentionKernel::any;
  auto operator<=>(const AttentionShape&) const = default;
};

// A convolution of an input [batch, in_channels, height, width]. One-dimensional convolutions have height 1
// and kernel_height 1. Stride, padding and dilation are equal in both dimensions.
struct ConvolutionShape {
  std::int64_t batch = 1;
  std::int64_t in_channels = 0, out_channels = 0;
  std::int64_t height = 1, width = 0;
  // Taps of the filter.
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t stride = 1, padding = 0, dilation = 1;
  // Groups must divide both channels; groups = in_channels: depthwise.
  std::int64_t groups = 1;
  auto operator<=>(const ConvolutionShape&) const = default;
  // Size of the output; 0 where the kernel does not fit the padded input.
  [[nodiscard]] std::int64_t out_height() const;
  [[nodiscard]] std::int64_t out_width() const;
};

// Gathers rows from embedding tables; each bag sums `pooling` rows into one output row.
struct LookupShape {
  std::int64_t tables = 1;
  std::int64_t rows = 0;          // of one table, on average
  std::int64_t dim = 0;           // columns
  std::int64_t bags = 0;          // output rows of one table
  double pooling = 1;             // mean lookups per bag
  double distinct_fraction = -1;  // distinct rows over lookups of a batch; -1: unknown
  bool fused_update = false;      // backward applies the optimizer to the rows that it touches
  auto operator<=>(const LookupShape&) const = default;
};

// Kind of normalisation.
enum class NormKind : std::uint8_t { layer_norm, rms_norm, batch_norm, group_norm };
[[nodiscard]] std::string_view to_string(NormKind kind);
// Normalises `rows` vectors of `cols` elements each; batch_norm: rows = channels, cols = all other elements.
struct NormShape {
  NormKind kind = NormKind::layer_norm;
  std::int64_t rows = 0, cols = 0;
  bool fused = true;  // one kernel; else cast, square, mean, scale, ... as separate kernels
  auto operator<=>(const NormShape&) const = default;
};

// Kind of softmax.
enum class SoftmaxKind : std::uint8_t {
  plain,          // framework softmax over the last dimension
  log_softmax,    // logarithm of the softmax
  causal_masked,  // fused scale, upper-triangular mask and softmax
};
[[nodiscard]] std::string_view to_string(SoftmaxKind kind);
// Softmax over `cols` elements of each of `rows` rows.
struct SoftmaxShape {
  SoftmaxKind kind = SoftmaxKind::plain;
  std::int64_t rows = 0, cols = 0;
  auto operator<=>(const SoftmaxShape&) const = default;
};

// Log-softmax and negative log-likelihood of `rows` tokens over the `classes` of this rank.
struct CrossEntropyShape {
  // Tokens, and the part of the vocabulary on this rank.
  std::int64_t rows = 0, classes = 0;
  bool fused = false;  // one kernel instead of log_softmax, nll_loss, casts and reductions
  auto operator<=>(const CrossEntropyShape&) const = default;
};

// Function of an element-wise kernel. `..._scalar`: the second operand is a number.
enum class ElementwiseFunction : std::uint8_t {
  other,
  add,
  multiply,
  divide,
  power,
  add_scalar,
  multiply_scalar,
  divide_scalar,
  power_scalar,
  cast,
  masked_fill,
  relu,
  gelu,
  tanh,
  sigmoid,
  silu,
  gated_silu,  // silu(a) * b, the activation of SwiGLU
  squared_relu,
  exponential,
  dropout,
  rotary,          // rotary position encoding of queries or keys
  residual_add,    // x + y of activations
  rotary_unfused,  // rotary as separate operations: split, negate, concatenate, two multiplications, addition
};
[[nodiscard]] std::string_view to_string(ElementwiseFunction function);

// The same arithmetic on every element; fused kernels state the amounts that they read and write.
struct ElementwiseShape {
  ElementwiseFunction function = ElementwiseFunction::other;
  std::int64_t elements = 0;  // of the output
  float reads = 1;            // number of tensors of `elements` read, in units of the operation's dtype
  float writes = 1;           // number written, in the same units
  // A multiply-add counts as two; a special function (exp, tanh, a root, a quotient) as one.
  float flops_per_element = 1;
  std::int64_t inner = 0;  // length of the innermost dimension; 0: unknown
  auto operator<=>(const ElementwiseShape&) const = default;
};

// Kind of data movement.
enum class MovementKind : std::uint8_t {
  copy,       // contiguous to contiguous
  transpose,  // strided to contiguous
  concatenate,
  split,
  gather,   // index, index_select
  scatter,  // index_put, scatter_add
  fill,     // only writes
};
[[nodiscard]] std::string_view to_string(MovementKind kind);
// Data moved by a kernel without arithmetic.
struct MovementShape {
  MovementKind kind = MovementKind::copy;
  std::int64_t elements = 0;   // elements written
  std::int64_t inner = 0;      // contiguous elements; 0: unknown
  bool routes_tokens = false;  // dispatch or combine of tokens
  auto operator<=>(const MovementShape&) const = default;
};

// `rows` sums (or means, maxima, norms) over `cols` elements each.
struct ReductionShape {
  // `rows` results; `cols` elements per result.
  std::int64_t rows = 0, cols = 0;
  auto operator<=>(const ReductionShape&) const = default;
};

// The optimizers; optimizer_rule.h has their states and work.
enum class OptimizerKind : std::uint8_t {
  sgd,
  momentum_sgd,
  adam,
  adamw,
  adagrad,
  lamb,
  muon,       // momentum, orthogonalised matrix by matrix
  dist_muon,  // Megatron's variant: ranks own whole weights
  shampoo,
  soap,
  count
};
[[nodiscard]] std::string_view to_string(OptimizerKind kind);
// fused: one kernel; foreach: one kernel per step over all tensors; for_loop: one kernel per step and tensor.
enum class OptimizerImplementation : std::uint8_t { fused, foreach, for_loop };
// One optimizer step over `parameters` in `tensors` tensors. Bytes per parameter include weights, gradients
// and states.
struct OptimizerShape {
  OptimizerKind kind = OptimizerKind::adam;
  OptimizerImplementation implementation = OptimizerImplementation::fused;
  // Totals of this rank.
  std::int64_t parameters = 0, tensors = 1;
  float bytes_read_per_parameter = 16;     // default: fp32 weight, gradient, two moments
  float bytes_written_per_parameter = 12;  // default: fp32 weight, two moments
  auto operator<=>(const OptimizerShape&) const = default;
};

// A copy by the copy engine, or a memset (kind none).
struct TransferShape {
  MemcpyKind kind = MemcpyKind::none;
  // Copied bytes, counted once.
  std::int64_t bytes = 0;
  bool pinned = true;  // host memory is page-locked
  auto operator<=>(const TransferShape&) const = default;
};

// C[rows, cols] = S[rows, inner] D[inner, cols] with `nonzeros` entries in S. `reuse`: repeated uses per
// fetched row of D, 0: unknown. sparse_result: D is also sparse, with `cols` nonzeros per row.
struct SparseShape {
  std::int64_t rows = 0, inner = 0, cols = 0;
  // Stored entries of S.
  double nonzeros = 0;
  double reuse = 0;
  bool sparse_result = false;
  auto operator<=>(const SparseShape&) const = default;
};

// Work known only by its amounts.
struct AmountShape {
  double flops = 0;  // a multiply-add counts as two
  // Compulsory traffic.
  double bytes_read = 0, bytes_written = 0;
  bool matrix = false;  // the FLOPs run on matrix units
  KernelClass kernel_class = KernelClass::other;
  auto operator<=>(const AmountShape&) const = default;
};

// All kinds of work. detail/shape_traits.h has the device-independent properties of each,
// cost/detail/shape_cost.h its prices.
using OperationShape = std::variant<GemmShape, AttentionShape, ConvolutionShape, LookupShape, NormShape,
                                    SoftmaxShape, CrossEntropyShape, ElementwiseShape, MovementShape,
                                    ReductionShape, OptimizerShape, TransferShape, SparseShape, AmountShape>;

// GPU work of one framework operator in one direction.
struct Operation {
  OperationShape shape;
  DType dtype = DType::fp32;  // of the operands; tf32 for fp32 data on TF32 units
  Direction direction = Direction::forward;
  friend bool operator==(const Operation&, const Operation&) = default;
};

// Shorthands for the most common operations.
[[nodiscard]] inline Operation gemm(GemmShape shape, DType dtype, Direction direction = Direction::forward) {
  return {shape, dtype, direction};
}
[[nodiscard]] inline Operation attention(AttentionShape shape, DType dtype,
                                         Direction direction = Direction::forward) {
  return {shape, dtype, direction};
}
[[nodiscard]] inline Operation elementwise(ElementwiseShape shape, DType dtype,
                                           Direction direction = Direction::forward) {
  return {shape, dtype, direction};
}
[[nodiscard]] inline Operation norm(NormShape shape, DType dtype, Direction direction = Direction::forward) {
  return {shape, dtype, direction};
}

// Minimum work of an operation: arithmetic, and every operand read and every result written once.
struct Work {
  Flops flops;               // a multiply-add counts as two
  bool matrix = false;       // runs on matrix units where the device has them for the dtype
  Bytes bytes_read;          // compulsory reads
  Bytes bytes_written;       // compulsory writes
  std::int64_t kernels = 1;  // launches of common implementations
  // Reads and writes together.
  [[nodiscard]] Bytes bytes() const { return bytes_read + bytes_written; }
};
Work& operator+=(Work& work, const Work& more);  // matrix if either is
// The minimum work of an operation; formulas in docs/operations.md.
[[nodiscard]] Work work_of(const Operation& operation);

// "gemm", "batched_gemm", "attention", "convolution", "embedding_lookup", "layer_norm", "softmax", "gelu",
// ...: the name in coverage reports and model records.
[[nodiscard]] std::string_view family_of(const Operation& operation);
// The class in which reports sum up the time.
[[nodiscard]] KernelClass kernel_class_of(const Operation& operation);
// One line for reports: "gemm bf16 forward m=8192 n=16384 k=4096".
[[nodiscard]] std::string describe(const Operation& operation);
// Describes the first impossible extent of a shape (negative, groups that do not divide channels, a kernel
// larger than the image, ...). Empty: the shape is valid.
[[nodiscard]] std::string shape_problem(const Operation& operation);
// Hash for caches: equal operations have equal hashes.
[[nodiscard]] std::size_t hash_of(const Operation& operation);

}  // namespace stepcast

// An Operation: what a piece of GPU work is (kind, shape, element types, direction), whoever runs it and
// however long it takes. cost/ prices it on a device; workload/ and trace/ produce it.
//
//   const Operation up = gemm({.m = 8192, .n = 16384, .k = 4096}, DType::bf16);
//   const Work work = work_of(up);
//   work.flops                2 * 8192 * 16384 * 4096
//   work.bytes()              2 * (8192 * 4096 + 4096 * 16384 + 8192 * 16384)
//
// `direction` says which part of training: `backward` is everything the backward of the operation does (for a
// gemm both gradients), so one Operation per direction describes an op of a framework completely.
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

enum class Direction : std::uint8_t {
  forward,
  backward,         // all gradients
  input_gradient,   // gemm and convolution: the gradient of the activations alone
  weight_gradient,  // gemm and convolution: the gradient of the weights alone
};
[[nodiscard]] std::string_view to_string(Direction direction);

// How the operands of a gemm lie in memory, as BLAS says it: TN is a linear layer's forward, NN the gradient
// of its input, NT the gradient of its weight. `any`: not known.
enum class GemmLayout : std::uint8_t { any, tn, nn, nt, tt };
[[nodiscard]] std::string_view to_string(GemmLayout layout);

// batch times C[m, n] = A[m, k] B[k, n].
struct GemmShape {
  std::int64_t batch = 1;
  std::int64_t m = 0, n = 0, k = 0;
  bool bias = false;         // adds a vector of n to every row; backward: reduces it
  bool accumulates = false;  // adds into C, as weight gradients do into their fp32 buffer
  GemmLayout layout = GemmLayout::any;
  DType output = DType::unknown;  // unknown: the type of the operands
  auto operator<=>(const GemmShape&) const = default;
};

// Which implementation runs fused attention: they differ by a factor of two on one device.
enum class AttentionKernel : std::uint8_t {
  any,
  flash1,     // FlashAttention before July 2023, and Triton kernels of that time
  flash2,     // FlashAttention-2; PyTorch >= 2.2
  flash3,     // FlashAttention-3 and cuDNN on Hopper
  efficient,  // xFormers memory-efficient attention
};
[[nodiscard]] std::string_view to_string(AttentionKernel kernel);

// softmax(Q K^T) V without the scores in memory. Lengths in tokens.
struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t query_length = 0, key_length = 0;
  std::int64_t heads = 0, key_value_heads = 0;  // of keys and values; 0: heads
  std::int64_t head_dim = 0;                    // of queries and keys
  std::int64_t value_head_dim = 0;              // 0: head_dim
  bool causal = true;
  std::int64_t window = 0;  // tokens each query sees at most; 0: all
  AttentionKernel kernel = AttentionKernel::any;
  auto operator<=>(const AttentionShape&) const = default;
};

// Input [batch, in_channels, height, width]; one-dimensional convolutions have height 1 and kernel_height 1.
struct ConvolutionShape {
  std::int64_t batch = 1;
  std::int64_t in_channels = 0, out_channels = 0;
  std::int64_t height = 1, width = 0;
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  auto operator<=>(const ConvolutionShape&) const = default;
  [[nodiscard]] std::int64_t out_height() const;
  [[nodiscard]] std::int64_t out_width() const;
};

// Rows gathered from embedding tables; bags add up `pooling` rows into one output row.
struct LookupShape {
  std::int64_t tables = 1;
  std::int64_t rows = 0;  // of one table, on average
  std::int64_t dim = 0;
  std::int64_t bags = 0;          // output rows of one table
  double pooling = 1;             // lookups per bag, on average
  double distinct_fraction = -1;  // distinct rows / lookups of a batch; -1: not known
  bool fused_update = false;      // backward applies the optimizer to the rows it touches
  auto operator<=>(const LookupShape&) const = default;
};

enum class NormKind : std::uint8_t { layer_norm, rms_norm, batch_norm, group_norm };
[[nodiscard]] std::string_view to_string(NormKind kind);
// `rows` vectors of `cols` elements, normalised each; batch_norm: rows = channels, cols = the rest.
struct NormShape {
  NormKind kind = NormKind::layer_norm;
  std::int64_t rows = 0, cols = 0;
  bool fused = true;  // one kernel; else cast, square, mean, scale, ... one after the other
  auto operator<=>(const NormShape&) const = default;
};

enum class SoftmaxKind : std::uint8_t {
  plain,          // framework softmax over the last dimension
  log_softmax,    //
  causal_masked,  // fused scale, upper-triangular mask and softmax
};
[[nodiscard]] std::string_view to_string(SoftmaxKind kind);
struct SoftmaxShape {
  SoftmaxKind kind = SoftmaxKind::plain;
  std::int64_t rows = 0, cols = 0;
  auto operator<=>(const SoftmaxShape&) const = default;
};

// Log-softmax and negative log-likelihood of `rows` tokens over `classes` (of this rank).
struct CrossEntropyShape {
  std::int64_t rows = 0, classes = 0;
  bool fused = false;  // one kernel instead of log_softmax and nll_loss, casts and reductions
  auto operator<=>(const CrossEntropyShape&) const = default;
};

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
  gated_silu,  // silu(a) * b, the middle of SwiGLU
  squared_relu,
  exponential,
  dropout,
  rotary,          // rotary position embedding of queries or keys
  residual_add,    // x + y of activations
  rotary_unfused,  // the same as rotary, written out: split, negate, concatenate, two products, sum
};
[[nodiscard]] std::string_view to_string(ElementwiseFunction function);

// The same arithmetic on every element; fused kernels list what they read and write.
struct ElementwiseShape {
  ElementwiseFunction function = ElementwiseFunction::other;
  std::int64_t elements = 0;  // of the output
  float reads = 1;            // tensors of `elements` read, and
  float writes = 1;           // written, in units of the operation's dtype
  float flops_per_element = 1;
  std::int64_t inner = 0;  // length of the innermost dimension; 0: not known
  auto operator<=>(const ElementwiseShape&) const = default;
};

enum class MovementKind : std::uint8_t {
  copy,       // contiguous to contiguous
  transpose,  // strided to contiguous
  concatenate,
  split,
  gather,   // index, index_select, embedding-like with given bytes
  scatter,  // index_put, scatter_add
  fill,     // writes only
};
[[nodiscard]] std::string_view to_string(MovementKind kind);
// Data moved by a kernel, nothing computed.
struct MovementShape {
  MovementKind kind = MovementKind::copy;
  std::int64_t elements = 0;   // written
  std::int64_t inner = 0;      // elements moved together; 0: not known
  bool routes_tokens = false;  // to their experts and back
  auto operator<=>(const MovementShape&) const = default;
};

// `rows` sums (or means, maxima, norms) over `cols` elements each.
struct ReductionShape {
  std::int64_t rows = 0, cols = 0;
  auto operator<=>(const ReductionShape&) const = default;
};

// optimizer_rule.h says what each keeps and does.
enum class OptimizerKind : std::uint8_t {
  sgd,
  momentum_sgd,
  adam,
  adamw,
  adagrad,
  lamb,
  muon,       // momentum, orthogonalised matrix by matrix
  dist_muon,  // Megatron's: ranks own whole layers
  shampoo,
  soap,
  count
};
[[nodiscard]] std::string_view to_string(OptimizerKind kind);
enum class OptimizerImplementation : std::uint8_t { fused, foreach, for_loop };
// One step over `parameters` in `tensors` pieces. Bytes per parameter are what is read and written of
// weights, gradients and states together.
struct OptimizerShape {
  OptimizerKind kind = OptimizerKind::adam;
  OptimizerImplementation implementation = OptimizerImplementation::fused;
  std::int64_t parameters = 0, tensors = 1;
  float bytes_read_per_parameter = 16;     // fp32 weight, gradient, two moments
  float bytes_written_per_parameter = 12;  // fp32 weight, two moments
  auto operator<=>(const OptimizerShape&) const = default;
};

// A transfer by the copy engine, or a memset (kind none).
struct TransferShape {
  MemcpyKind kind = MemcpyKind::none;
  std::int64_t bytes = 0;
  bool pinned = true;
  auto operator<=>(const TransferShape&) const = default;
};

// C[rows, cols] = S[rows, inner] D[inner, cols] with `nonzeros` entries in S; `reuse`: how often a row of D
// that was fetched is used again, 0: not known. sparse_result: D is sparse too, `cols` nonzeros a row.
struct SparseShape {
  std::int64_t rows = 0, inner = 0, cols = 0;
  double nonzeros = 0;
  double reuse = 0;
  bool sparse_result = false;
  auto operator<=>(const SparseShape&) const = default;
};

// Work that is known by its amounts alone.
struct AmountShape {
  double flops = 0;
  double bytes_read = 0, bytes_written = 0;
  bool matrix = false;  // FLOPs run on matrix units
  KernelClass kernel_class = KernelClass::other;
  auto operator<=>(const AmountShape&) const = default;
};

using OperationShape = std::variant<GemmShape, AttentionShape, ConvolutionShape, LookupShape, NormShape,
                                    SoftmaxShape, CrossEntropyShape, ElementwiseShape, MovementShape,
                                    ReductionShape, OptimizerShape, TransferShape, SparseShape, AmountShape>;

struct Operation {
  OperationShape shape;
  DType dtype = DType::fp32;  // of the operands; tf32 for fp32 data on TF32 units
  Direction direction = Direction::forward;
  friend bool operator==(const Operation&, const Operation&) = default;
};

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

// What an operation has to do at the least: arithmetic, and every operand read and every result written once.
struct Work {
  Flops flops;               // multiply and add count two
  bool matrix = false;       // runs on matrix units where the device has them for the dtype
  Bytes bytes_read;          // compulsory
  Bytes bytes_written;       // compulsory
  std::int64_t kernels = 1;  // launched by common implementations
  [[nodiscard]] Bytes bytes() const { return bytes_read + bytes_written; }
};
Work& operator+=(Work& work, const Work& more);  // matrix if either is
[[nodiscard]] Work work_of(const Operation& operation);

// "gemm", "batched_gemm", "attention", "convolution", "embedding_lookup", "layer_norm", "softmax", "gelu",
// ...: what coverage reports and model records call it.
[[nodiscard]] std::string_view family_of(const Operation& operation);
// The class in which its time is reported.
[[nodiscard]] KernelClass kernel_class_of(const Operation& operation);
// "gemm bf16 forward m=8192 n=16384 k=4096": for people.
[[nodiscard]] std::string describe(const Operation& operation);
// True if the shape can be: no negative extent, groups that divide channels, a kernel that fits...
// The text names the extent that cannot; empty: fine.
[[nodiscard]] std::string shape_problem(const Operation& operation);
// For memo tables: equal operations have equal hashes.
[[nodiscard]] std::size_t hash_of(const Operation& operation);

}  // namespace stepcast

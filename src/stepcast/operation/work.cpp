// What operations have to do at the least. docs/operations.md writes the same formulas for people.
#include <algorithm>
#include <cmath>

#include "stepcast/operation/operation.h"
#include "stepcast/operation/optimizer_rule.h"

namespace stepcast {
namespace {

// Indices and targets are 64-bit integers, masks are booleans, statistics kept for the backward are fp32.
constexpr double kIndexBytes = 8;
constexpr double kMaskBytes = 1;
constexpr double kStatisticBytes = 4;

double number(std::int64_t value) { return static_cast<double>(value); }

Work make_work(double flops, double bytes_read, double bytes_written, std::int64_t kernels = 1,
               bool matrix = false) {
  return {Flops{flops}, matrix, Bytes{bytes_read}, Bytes{bytes_written}, kernels};
}

struct WorkOf {
  DType dtype;
  Direction direction;
  double element = element_size(dtype).value();

  [[nodiscard]] bool forward() const { return direction == Direction::forward; }
  // A direction that stands for one of the two gradients of a product.
  [[nodiscard]] bool wants_input_gradient() const { return direction != Direction::weight_gradient; }
  [[nodiscard]] bool wants_weight_gradient() const { return direction != Direction::input_gradient; }

  Work operator()(const GemmShape& s) const {
    const double batch = number(s.batch);
    const double a = batch * number(s.m) * number(s.k) * element;
    const double b = batch * number(s.k) * number(s.n) * element;
    const double c = batch * number(s.m) * number(s.n);
    const double result = s.output == DType::unknown ? element : element_size(s.output).value();
    const double flops = 2 * c * number(s.k);
    if (forward()) {
      // The bias is added where the product is written: no matrix work and no second pass.
      const double bias = s.bias ? number(s.n) * element : 0;
      return make_work(flops, a + b + bias + (s.accumulates ? c * result : 0), c * result, 1, true);
    }
    Work work = make_work(0, c * element, 0, 0, true);
    if (wants_input_gradient()) work += make_work(flops, b, a);
    if (wants_weight_gradient()) {
      const double gradient = b / std::max(element, 1.0) * result;
      work += make_work(flops, a + (s.accumulates ? gradient : 0), gradient);
      if (s.bias) work += make_work(c, s.accumulates ? number(s.n) * result : 0, number(s.n) * result);
    }
    return work;
  }

  Work operator()(const AttentionShape& s) const {
    const double heads = number(s.batch) * number(s.heads);
    const double key_value_heads =
        number(s.batch) * number(s.key_value_heads > 0 ? s.key_value_heads : s.heads);
    const double d = number(s.head_dim);
    const double dv = number(s.value_head_dim > 0 ? s.value_head_dim : s.head_dim);
    const double keys = keys_in_reach(s);
    const double q = heads * number(s.query_length) * d * element;
    const double o = heads * number(s.query_length) * dv * element;
    const double k = key_value_heads * keys * d * element;
    const double v = key_value_heads * keys * dv * element;
    const double log_sum_exp = heads * number(s.query_length) * kStatisticBytes;
    const double pairs = heads * pairs_of(s);
    if (forward()) return make_work(2 * pairs * (d + dv), q + k + v, o + log_sum_exp, 1, true);
    // Q K^T again, dP = dO V^T, dV = P^T dO, dQ = dS K, dK = dS^T Q. Kernels: the row sums of dO * O, the
    // gradients, the conversion of dQ from its accumulator.
    return make_work(2 * pairs * (3 * d + 2 * dv), q + k + v + 2 * o + log_sum_exp, q + k + v, 3, true);
  }

  // Keys of one head that any query sees.
  static double keys_in_reach(const AttentionShape& s) {
    if (s.window <= 0) return number(s.key_length);
    return std::min(number(s.key_length), number(s.window) + std::max(number(s.query_length) - 1, 0.0));
  }

  // Scores of one head that are computed. The last query is aligned with the last key.
  static double pairs_of(const AttentionShape& s) {
    const double queries = number(s.query_length);
    const double keys = number(s.key_length);
    const double limit = s.window > 0 ? std::min(number(s.window), keys) : keys;
    if (!s.causal) return queries * limit;
    // Query i sees x = keys - queries + 1 + i of them: x runs from `first` to `keys` in steps of one, and
    // counts as nothing below 0 and as `limit` above it.
    const double first = std::max(keys - queries + 1, 1.0);
    const double grows_until = std::min(limit, keys);
    const double growing = std::max(grows_until - first + 1, 0.0);
    const double capped = std::max(keys - std::max(first, grows_until + 1) + 1, 0.0);
    return growing * (first + grows_until) / 2 + capped * limit;
  }

  Work operator()(const ConvolutionShape& s) const {
    const double out_pixels = number(s.out_height()) * number(s.out_width());
    // A stride beyond the kernel jumps over pixels.
    const double touched = std::min(number(s.height), number(s.out_height()) * number(s.kernel_height)) *
                           std::min(number(s.width), number(s.out_width()) * number(s.kernel_width));
    const double in_channels = number(s.batch) * number(s.in_channels);
    const double kernel = number(s.in_channels) / number(std::max<std::int64_t>(s.groups, 1)) *
                          number(s.kernel_height) * number(s.kernel_width);
    const double x = in_channels * touched * element;
    const double dx = in_channels * number(s.height) * number(s.width) * element;
    const double weight = number(s.out_channels) * kernel * element;
    const double outputs = number(s.batch) * number(s.out_channels) * out_pixels;
    const double flops = 2 * outputs * kernel;
    if (forward()) return make_work(flops, x + weight, outputs * element, 1, true);
    Work work = make_work(0, outputs * element, 0, 0, true);
    if (wants_input_gradient()) work += make_work(flops, weight, dx);
    if (wants_weight_gradient()) work += make_work(flops, x, weight);
    return work;
  }

  Work operator()(const LookupShape& s) const {
    const double bags = number(s.tables) * number(s.bags);
    const double lookups = bags * s.pooling;
    const double row = number(s.dim) * element;
    const double touched = distinct_rows(s) * row;
    // One lookup per bag needs no offsets.
    const double indices = (lookups + (s.pooling == 1 ? 0 : bags)) * kIndexBytes;
    const double sums = std::max(lookups - bags, 0.0) * number(s.dim);
    if (forward()) return make_work(sums, indices + touched, bags * row);
    const double scatter_adds = lookups * number(s.dim);
    // Sorting the indices, joining equal ones, the update itself.
    if (s.fused_update) return make_work(2 * scatter_adds, indices + bags * row + touched, touched, 4);
    const double gradient = s.rows > 0 ? number(s.tables) * number(s.rows) * row : touched;
    return make_work(scatter_adds, indices + bags * row, gradient, 2);
  }

  // Rows of all tables that are fetched at least once; where it is not known, as many as uniformly drawn
  // indices touch on average.
  static double distinct_rows(const LookupShape& s) {
    const double lookups_of_table = number(s.bags) * s.pooling;
    const double rows = number(s.rows);
    if (s.distinct_fraction >= 0) {
      const double distinct = s.distinct_fraction * lookups_of_table;
      return number(s.tables) * (rows > 0 ? std::min(distinct, rows) : distinct);
    }
    if (rows <= 0) return number(s.tables) * lookups_of_table;
    if (rows == 1) return number(s.tables) * std::min(lookups_of_table, 1.0);
    return number(s.tables) * rows * -std::expm1(lookups_of_table * std::log1p(-1 / rows));
  }

  Work operator()(const NormShape& s) const {
    const double elements = number(s.rows) * number(s.cols);
    const double tensor = elements * element;
    const bool batch_norm = s.kind == NormKind::batch_norm;
    const bool rms = s.kind == NormKind::rms_norm;
    // A weight, and except for RMS norm a bias, for each channel of batch norm and each column of the others.
    const double parameters = number(batch_norm ? s.rows : s.cols) * element;
    // Per row: 1 / root mean square, or mean and 1 / standard deviation.
    const double statistics = number(s.rows) * kStatisticBytes * (rms ? 1 : 2);
    if (!s.fused && rms) {
      // Norm of the rows, quotient, product with the weight; backward repeats each for its operands.
      return forward() ? make_work(elements * 4, 3 * tensor + parameters, 2 * tensor, 5)
                       : make_work(elements * 12, 10 * tensor + parameters, 6 * tensor, 14);
    }
    if (forward()) {
      // Layer norm: 1 for the sum, 3 for the squares of the differences, 2 to normalise, 2 for weight and
      // bias. RMS norm: 2 for the squares, 1 to normalise, 1 for the weight.
      const double running = batch_norm ? statistics : 0;
      return make_work(elements * (rms ? 4 : 8), tensor + parameters * (rms ? 1 : 2) + running,
                       tensor + statistics + running);
    }
    // Layer norm: 2 for the normalised x, 1 for dy * weight, 3 for the two sums, 4 for dx, 3 for the
    // gradients of weight and bias. Batch norm sums before it multiplies with the weight. RMS norm: 1, 1, 2,
    // 3, 2.
    const double flops_per_element = rms ? 9 : batch_norm ? 9 : 13;
    return make_work(elements * flops_per_element, 2 * tensor + parameters + statistics,
                     tensor + parameters * (rms ? 1 : 2), batch_norm ? 1 : 2);
  }

  Work operator()(const SoftmaxShape& s) const {
    double computed = number(s.rows) * number(s.cols);
    const double all = computed;
    const bool masked = s.kind == SoftmaxKind::causal_masked;
    // Above the diagonal nothing is read; the zeros there are written.
    if (masked) computed = number(s.rows) * (number(s.cols) + 1) / 2;
    const double scale = masked ? computed : 0;
    // Maximum, difference, exponential, sum, quotient; backward: product, sum, difference, product.
    if (forward()) return make_work(5 * computed + scale, computed * element, all * element);
    return make_work(4 * computed + scale, 2 * computed * element, all * element);
  }

  Work operator()(const CrossEntropyShape& s) const {
    const double logits = number(s.rows) * number(s.classes);
    const double targets = number(s.rows) * kIndexBytes;
    const double losses = number(s.rows) * kStatisticBytes;
    const double tensor = logits * element;
    if (forward()) {
      // Fused: the log-sum-exp is kept instead of the log-probabilities.
      if (s.fused) return make_work(4 * logits, tensor + targets, 2 * losses);
      return make_work(5 * logits, tensor + targets + number(s.rows) * element, tensor + losses, 3);
    }
    if (s.fused) return make_work(3 * logits, tensor + targets + 2 * losses, tensor);
    // The gradient of the log-probabilities is a tensor of its own: filled, set at the targets, read back.
    return make_work(3 * logits, 2 * tensor + targets + losses, 2 * tensor, 3);
  }

  Work operator()(const ElementwiseShape& s) const {
    const double elements = number(s.elements);
    const bool mask =
        s.function == ElementwiseFunction::dropout || s.function == ElementwiseFunction::masked_fill;
    const double mask_bytes = mask ? elements * kMaskBytes : 0;
    const double reads = static_cast<double>(s.reads);
    const double writes = static_cast<double>(s.writes);
    double flops = elements * static_cast<double>(s.flops_per_element);
    if (forward()) {
      const bool writes_mask = s.function == ElementwiseFunction::dropout;
      return make_work(flops, elements * reads * element + (writes_mask ? 0 : mask_bytes),
                       elements * writes * element + (writes_mask ? mask_bytes : 0));
    }
    double in = writes, out = reads;  // gradient in, gradient out
    switch (s.function) {
      // Where a residual forks, the gradients of both branches are added up.
      case ElementwiseFunction::residual_add: in = reads, out = writes; break;
      // The gradient is the same for every operand: at most it is copied once.
      case ElementwiseFunction::add: out = writes; break;
      case ElementwiseFunction::add_scalar:
      case ElementwiseFunction::multiply_scalar:
      case ElementwiseFunction::divide_scalar:
      case ElementwiseFunction::cast:
      case ElementwiseFunction::masked_fill:
      case ElementwiseFunction::dropout:
      case ElementwiseFunction::rotary:
      case ElementwiseFunction::rotary_unfused: break;
      default:  // the derivative depends on the operands
        in += reads;
        flops *= 2;
    }
    return make_work(flops, elements * in * element + mask_bytes, elements * out * element);
  }

  Work operator()(const MovementShape& s) const {
    const double bytes = number(s.elements) * element;
    if (s.kind == MovementKind::fill) return make_work(0, 0, bytes);
    const bool indexed = s.kind == MovementKind::gather || s.kind == MovementKind::scatter;
    const double indices = indexed && s.inner > 0 ? number(s.elements) / number(s.inner) * kIndexBytes : 0;
    return make_work(0, bytes + indices, bytes);
  }

  Work operator()(const ReductionShape& s) const {
    const double rows = number(s.rows) * element;
    const double elements = number(s.rows) * number(s.cols);
    if (forward()) return make_work(elements, elements * element, rows);
    return make_work(elements, rows, elements * element);
  }

  Work operator()(const OptimizerShape& s) const {
    const double n = number(s.parameters);
    return make_work(n * rule_of(s.kind).flops_per_parameter,
                     n * static_cast<double>(s.bytes_read_per_parameter),
                     n * static_cast<double>(s.bytes_written_per_parameter), optimizer_kernels(s));
  }

  static std::int64_t optimizer_kernels(const OptimizerShape& s) {
    // PyTorch's multi_tensor_apply: at most 320 chunks of 65,536 elements and a few dozen tensors a launch.
    constexpr std::int64_t kElementsOfLaunch = 320LL * 65536, kTensorsOfLaunch = 36;
    const auto launches =
        std::max<std::int64_t>(1, std::max((s.parameters + kElementsOfLaunch - 1) / kElementsOfLaunch,
                                           (s.tensors + kTensorsOfLaunch - 1) / kTensorsOfLaunch));
    if (s.implementation == OptimizerImplementation::fused) return launches;
    const std::int64_t steps = rule_of(s.kind).kernels_unfused;
    return steps * (s.implementation == OptimizerImplementation::foreach ? launches : s.tensors);
  }

  Work operator()(const TransferShape& s) const {
    const double bytes = number(s.bytes);
    return make_work(0, s.kind == MemcpyKind::none ? 0 : bytes, bytes);
  }

  Work operator()(const SparseShape& s) const {
    const double entry = element + kIndexBytes;
    const double row_starts = (number(s.rows) + 1) * kIndexBytes;
    const double sparse = s.nonzeros * entry + row_starts;
    // A row of D is fetched once for every 1 + reuse times it is used; at the least once if it is used.
    const double fetched = s.reuse > 0 ? s.nonzeros / (1 + s.reuse) : std::min(s.nonzeros, number(s.inner));
    const double row_of_d = number(s.cols) * (s.sparse_result ? entry : element);
    // Products of sparse matrices: as large as the result can be, when no two products meet.
    const double result =
        s.sparse_result ? s.nonzeros * row_of_d + row_starts : number(s.rows) * number(s.cols) * element;
    const double flops = 2 * s.nonzeros * number(s.cols);
    const double dense = fetched * row_of_d;
    if (forward()) return make_work(flops, sparse + dense, result);
    Work work = make_work(0, sparse + result, 0, 0);
    if (wants_input_gradient()) work += make_work(flops, 0, number(s.inner) * row_of_d);
    if (wants_weight_gradient()) work += make_work(flops, dense, s.nonzeros * element);
    return work;
  }

  Work operator()(const AmountShape& s) const {
    return make_work(s.flops, s.bytes_read, s.bytes_written, 1, s.matrix);
  }
};

}  // namespace

Work& operator+=(Work& work, const Work& more) {
  work.flops += more.flops;
  work.bytes_read += more.bytes_read;
  work.bytes_written += more.bytes_written;
  work.matrix = work.matrix || more.matrix;
  work.kernels += more.kernels;
  return work;
}

Work work_of(const Operation& operation) {
  return std::visit(WorkOf{operation.dtype, operation.direction}, operation.shape);
}

}  // namespace stepcast

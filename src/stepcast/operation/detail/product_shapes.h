// Device-independent properties of operations that multiply matrices.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "stepcast/operation/detail/operation_names.h"
#include "stepcast/operation/detail/shape_facts.h"

namespace stepcast::detail {

// See shape_traits.h for the members.
template <>
struct ShapeTraits<GemmShape> {
  static constexpr auto fields() {
    using S = GemmShape;
    return std::tuple{ShapeField{"batch", &S::batch, 0}, ShapeField{"m", &S::m, 0},
                      ShapeField{"n", &S::n, 0},         ShapeField{"k", &S::k, 0},
                      ShapeField{"bias", &S::bias},      ShapeField{"accumulates", &S::accumulates},
                      ShapeField{"layout", &S::layout},  ShapeField{"output", &S::output}};
  }
  static std::string_view family(const GemmShape& s) { return s.batch == 1 ? "gemm" : "batched_gemm"; }
  static KernelClass kernel_class(const GemmShape&) { return KernelClass::gemm; }
  static std::string describe(const GemmShape& s) {
    std::string out = s.batch == 1 ? std::string{} : fmt::format("batch={} ", s.batch);
    out += fmt::format("m={} n={} k={}", s.m, s.n, s.k);
    if (s.bias) out += " bias";
    if (s.accumulates) out += " accumulates";
    if (s.layout != GemmLayout::any) out += fmt::format(" {}", to_string(s.layout));
    if (s.output != DType::unknown) out += fmt::format(" output={}", to_string(s.output));
    return out;
  }
  static std::string problem(const GemmShape&) { return {}; }
  static Work work(const GemmShape& s, const AskedWork& of) {
    const double batch = real_of(s.batch);
    const double a = batch * real_of(s.m) * real_of(s.k) * of.element;
    const double b = batch * real_of(s.k) * real_of(s.n) * of.element;
    const double c = batch * real_of(s.m) * real_of(s.n);
    const double result = s.output == DType::unknown ? of.element : element_size(s.output).value();
    const double flops = 2 * c * real_of(s.k);
    if (of.forward()) {
      // The bias is added where the result is written: no matrix work and no second pass.
      const double bias = s.bias ? real_of(s.n) * of.element : 0;
      return make_work(flops, a + b + bias + (s.accumulates ? c * result : 0), c * result, 1, true);
    }
    Work work = make_work(0, c * of.element, 0, 0, true);
    if (of.wants_input_gradient()) work += make_work(flops, b, a);
    if (of.wants_weight_gradient()) {
      const double gradient = b / std::max(of.element, 1.0) * result;
      work += make_work(flops, a + (s.accumulates ? gradient : 0), gradient);
      if (s.bias) work += make_work(c, s.accumulates ? real_of(s.n) * result : 0, real_of(s.n) * result);
    }
    return work;
  }
  static GemmShape smallest(GemmShape s) {
    s.batch = s.batch > 1 ? 2 : 1;  // a single GEMM is another family
    s.m = s.n = s.k = 16;
    return s;
  }
  static bool grow(GemmShape& s, const BatchGrowth& batch, Direction direction, bool backward) {
    return batch.grow_product(s, direction, backward);
  }
};

// Fused attention.
template <>
struct ShapeTraits<AttentionShape> {
  static constexpr auto fields() {
    using S = AttentionShape;
    return std::tuple{ShapeField{"batch", &S::batch, 0},
                      ShapeField{"query_length", &S::query_length, 0},
                      ShapeField{"key_length", &S::key_length, 0},
                      ShapeField{"heads", &S::heads, 1},
                      ShapeField{"key_value_heads", &S::key_value_heads, 0},
                      ShapeField{"head_dim", &S::head_dim, 1},
                      ShapeField{"value_head_dim", &S::value_head_dim, 0},
                      ShapeField{"causal", &S::causal},
                      ShapeField{"window", &S::window, 0},
                      ShapeField{"kernel", &S::kernel}};
  }
  static std::string_view family(const AttentionShape&) { return "attention"; }
  static KernelClass kernel_class(const AttentionShape&) { return KernelClass::attention; }
  static std::string describe(const AttentionShape& s) {
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
  // Constraints between fields.
  static std::string problem(const AttentionShape& s) {
    if (s.key_value_heads == 0 || s.heads % s.key_value_heads == 0) return {};
    return fmt::format("key_value_heads = {} (must divide heads = {})", s.key_value_heads, s.heads);
  }
  static Work work(const AttentionShape& s, const AskedWork& of) {
    const double heads = real_of(s.batch) * real_of(s.heads);
    const double key_value_heads =
        real_of(s.batch) * real_of(s.key_value_heads > 0 ? s.key_value_heads : s.heads);
    const double d = real_of(s.head_dim);
    const double dv = real_of(s.value_head_dim > 0 ? s.value_head_dim : s.head_dim);
    const double keys = keys_in_reach(s);
    const double q = heads * real_of(s.query_length) * d * of.element;
    const double o = heads * real_of(s.query_length) * dv * of.element;
    const double k = key_value_heads * keys * d * of.element;
    const double v = key_value_heads * keys * dv * of.element;
    const double log_sum_exp = heads * real_of(s.query_length) * kBytesOfStatistic;
    const double pairs = heads * pairs_of(s);
    if (of.forward()) return make_work(2 * pairs * (d + dv), q + k + v, o + log_sum_exp, 1, true);
    // Q K^T again, dP = dO V^T, dV = P^T dO, dQ = dS K, dK = dS^T Q. Kernels: row sums of dO * O, the
    // gradients, and the conversion of dQ from its accumulator.
    return make_work(2 * pairs * (3 * d + 2 * dv), q + k + v + 2 * o + log_sum_exp, q + k + v, 3, true);
  }
  // Keys of one head that at least one query attends to.
  static double keys_in_reach(const AttentionShape& s) {
    if (s.window <= 0) return real_of(s.key_length);
    return std::min(real_of(s.key_length), real_of(s.window) + std::max(real_of(s.query_length) - 1, 0.0));
  }
  // Computed scores of one head. The last query is aligned with the last key.
  static double pairs_of(const AttentionShape& s) {
    const double queries = real_of(s.query_length);
    const double keys = real_of(s.key_length);
    const double limit = s.window > 0 ? std::min(real_of(s.window), keys) : keys;
    if (!s.causal) return queries * limit;
    // Query i attends to x = keys - queries + 1 + i keys: x runs from `first` to `keys` in steps of one, is 0
    // below 0 and limited to `limit`.
    const double first = std::max(keys - queries + 1, 1.0);
    const double grows_until = std::min(limit, keys);
    const double growing = std::max(grows_until - first + 1, 0.0);
    const double capped = std::max(keys - std::max(first, grows_until + 1) + 1, 0.0);
    return growing * (first + grows_until) / 2 + capped * limit;
  }
  static AttentionShape smallest(AttentionShape s) {
    s.batch = 1;
    s.query_length = s.key_length = 16;
    s.heads = s.key_value_heads = 1;
    return s;
  }
  static bool grow(AttentionShape& s, const BatchGrowth& batch, Direction, bool) {
    return batch.grow(s.batch);
  }
};

// Convolution in one or two dimensions.
template <>
struct ShapeTraits<ConvolutionShape> {
  static constexpr auto fields() {
    using S = ConvolutionShape;
    return std::tuple{ShapeField{"batch", &S::batch, 0},
                      ShapeField{"in_channels", &S::in_channels, 1},
                      ShapeField{"out_channels", &S::out_channels, 1},
                      ShapeField{"height", &S::height, 1},
                      ShapeField{"width", &S::width, 1},
                      ShapeField{"kernel_height", &S::kernel_height, 1},
                      ShapeField{"kernel_width", &S::kernel_width, 1},
                      ShapeField{"stride", &S::stride, 1},
                      ShapeField{"padding", &S::padding, 0},
                      ShapeField{"dilation", &S::dilation, 1},
                      ShapeField{"groups", &S::groups, 1}};
  }
  static std::string_view family(const ConvolutionShape&) { return "convolution"; }
  static KernelClass kernel_class(const ConvolutionShape&) { return KernelClass::gemm; }
  static std::string describe(const ConvolutionShape& s) {
    return fmt::format(
        "batch={} channels={}->{} image={}x{} kernel={}x{} stride={} padding={} dilation={} groups={}",
        s.batch, s.in_channels, s.out_channels, s.height, s.width, s.kernel_height, s.kernel_width, s.stride,
        s.padding, s.dilation, s.groups);
  }
  // Constraints between fields.
  static std::string problem(const ConvolutionShape& s) {
    if (s.in_channels % s.groups != 0 || s.out_channels % s.groups != 0)
      return fmt::format("groups = {} (must divide in_channels = {} and out_channels = {})", s.groups,
                         s.in_channels, s.out_channels);
    if (s.out_height() < 1 || s.out_width() < 1)
      return fmt::format("kernel {}x{} with dilation {} does not fit the padded image {}x{} (padding {})",
                         s.kernel_height, s.kernel_width, s.dilation, s.height, s.width, s.padding);
    return {};
  }
  static Work work(const ConvolutionShape& s, const AskedWork& of) {
    const double out_pixels = real_of(s.out_height()) * real_of(s.out_width());
    // A stride larger than the kernel skips pixels.
    const double touched = std::min(real_of(s.height), real_of(s.out_height()) * real_of(s.kernel_height)) *
                           std::min(real_of(s.width), real_of(s.out_width()) * real_of(s.kernel_width));
    const double in_channels = real_of(s.batch) * real_of(s.in_channels);
    const double kernel = real_of(s.in_channels) / real_of(std::max<std::int64_t>(s.groups, 1)) *
                          real_of(s.kernel_height) * real_of(s.kernel_width);
    const double x = in_channels * touched * of.element;
    const double dx = in_channels * real_of(s.height) * real_of(s.width) * of.element;
    const double weight = real_of(s.out_channels) * kernel * of.element;
    const double outputs = real_of(s.batch) * real_of(s.out_channels) * out_pixels;
    const double flops = 2 * outputs * kernel;
    if (of.forward()) return make_work(flops, x + weight, outputs * of.element, 1, true);
    Work work = make_work(0, outputs * of.element, 0, 0, true);
    if (of.wants_input_gradient()) work += make_work(flops, weight, dx);
    if (of.wants_weight_gradient()) work += make_work(flops, x, weight);
    return work;
  }
  static ConvolutionShape smallest(ConvolutionShape s) {
    s.batch = 1;
    s.in_channels = s.groups > 1 ? s.groups : 16;
    s.out_channels = s.groups > 1 ? s.groups : 16;
    s.height = std::min<std::int64_t>(s.height, std::max<std::int64_t>(s.kernel_height, 1));
    s.width = std::max<std::int64_t>(s.kernel_width, 1);
    return s;
  }
  static bool grow(ConvolutionShape& s, const BatchGrowth& batch, Direction, bool) {
    return batch.grow(s.batch);
  }
};

// Sparse GEMM.
template <>
struct ShapeTraits<SparseShape> {
  static constexpr auto fields() {
    using S = SparseShape;
    return std::tuple{ShapeField{"rows", &S::rows, 0},   ShapeField{"inner", &S::inner, 0},
                      ShapeField{"cols", &S::cols, 0},   ShapeField{"nonzeros", &S::nonzeros, 0},
                      ShapeField{"reuse", &S::reuse, 0}, ShapeField{"sparse_result", &S::sparse_result}};
  }
  static std::string_view family(const SparseShape&) { return "sparse"; }
  static KernelClass kernel_class(const SparseShape&) { return KernelClass::gemm; }
  static std::string describe(const SparseShape& s) {
    std::string out =
        fmt::format("rows={} inner={} cols={} nonzeros={:.0f}", s.rows, s.inner, s.cols, s.nonzeros);
    if (s.reuse > 0) out += fmt::format(" reuse={:g}", s.reuse);
    if (s.sparse_result) out += " sparse_result";
    return out;
  }
  static std::string problem(const SparseShape&) { return {}; }
  static Work work(const SparseShape& s, const AskedWork& of) {
    const double entry = of.element + kBytesOfIndex;
    const double row_starts = (real_of(s.rows) + 1) * kBytesOfIndex;
    const double sparse = s.nonzeros * entry + row_starts;
    // A row of D is fetched once per 1 + reuse uses; without a known reuse once if it is used.
    const double fetched = s.reuse > 0 ? s.nonzeros / (1 + s.reuse) : std::min(s.nonzeros, real_of(s.inner));
    const double row_of_d = real_of(s.cols) * (s.sparse_result ? entry : of.element);
    // Two sparse matrices: the largest possible result, where no two terms coincide.
    const double result =
        s.sparse_result ? s.nonzeros * row_of_d + row_starts : real_of(s.rows) * real_of(s.cols) * of.element;
    const double flops = 2 * s.nonzeros * real_of(s.cols);
    const double dense = fetched * row_of_d;
    if (of.forward()) return make_work(flops, sparse + dense, result);
    Work work = make_work(0, sparse + result, 0, 0);
    if (of.wants_input_gradient()) work += make_work(flops, 0, real_of(s.inner) * row_of_d);
    if (of.wants_weight_gradient()) work += make_work(flops, dense, s.nonzeros * of.element);
    return work;
  }
  static SparseShape smallest(SparseShape s) {
    s.rows = s.inner = s.cols = 16;
    s.nonzeros = 16;
    return s;
  }
  static bool grow(SparseShape& s, const BatchGrowth& batch, Direction, bool) {
    if (!batch.grow(s.rows)) return false;
    s.nonzeros *= batch.ratio();
    return true;
  }
};

}  // namespace stepcast::detail

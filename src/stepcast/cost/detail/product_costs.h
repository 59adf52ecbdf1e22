// Costs of operations that multiply matrices: GEMM, attention, convolution and sparse GEMM.
#pragma once

#include <algorithm>
#include <cmath>

#include "stepcast/cost/detail/attention_blocks.h"
#include "stepcast/cost/detail/gemm_tiles.h"
#include "stepcast/cost/detail/shape_cost_facts.h"
#include "stepcast/cost/families/reference_time.h"
#include "stepcast/operation/operation.h"

namespace stepcast::detail {

// Winograd transforms save a factor of 2.25 of the multiplications of 3x3 convolutions with stride 1, and
// cost part of that; neusight_train_conv_fp32.csv: median 1.0 to 1.2 of the direct FLOPs at peak.
inline constexpr double kWinogradGain = 1.45;

// Powers of two, up to 8, that divide both extents. Matrix units load pieces of eight elements along the
// innermost extents.
inline float whole_vectors(std::int64_t a, std::int64_t b) { return std::min(twos_in(a, 3), twos_in(b, 3)); }
// Limit of the channel features: below about one tile of channels, matrix units mostly compute padding.
inline constexpr double kFewChannels = 64;

// GEMM and its gradients: dX = dC B' and dW = A' dC, by tiles (gemm_tiles.h).
template <>
struct ShapeCost<GemmShape> {
  static double closed_form_us(const GemmShape& s, const PlainKernel& of) {
    Product p{as_double(s.batch), as_double(s.m), as_double(s.n), as_double(s.k),
              of.dtype,           of.element,     of.element,     s.accumulates};
    if (s.output != DType::unknown) p.result_bytes = element_size(s.output).value();
    if (of.forward()) return best_tiling(p, of.device).time_us();
    double time = 0;
    // dX[m, k]: extents n and k exchanged.
    if (of.direction != Direction::weight_gradient) {
      Product dx = p;
      dx.n = p.k, dx.k = p.n, dx.result_bytes = of.element, dx.accumulates = false;
      time += best_tiling(dx, of.device).time_us();
    }
    // dW[k, n]: extents m and k exchanged; the bias gradient is a reduction over m.
    if (of.direction != Direction::input_gradient) {
      Product dw = p;
      dw.m = p.k, dw.k = p.m;
      time += best_tiling(dw, of.device).time_us();
      if (s.bias)
        time += p.batch * p.m * p.n * of.element / (of.device.memory.per_us * Efficiency::reduction) +
                of.device.kernel_floor_us;
    }
    if (of.direction == Direction::backward) time += of.device.kernel_floor_us;
    return time;
  }
  static void reference(const GemmShape& s, ReferenceAmounts& to) {
    add_reference_products(to.terms, to.device, s, to.direction, to.elements);
  }
  static constexpr KernelFeatureSet kFeatures = KernelFeatureSet::matrix;
  // In the order of kMatrix in families/kernel_features.cpp.
  static void features(const GemmShape& s, FeatureWriter& write, double sm_count, double log_reference) {
    const double log_m = std::log(at_least_one(s.m)), log_n = std::log(at_least_one(s.n)),
                 log_k = std::log(at_least_one(s.k));
    const double log_batch = s.batch > 1 ? std::log(at_least_one(s.batch)) : 0;
    write(log_m);
    write(log_n);
    write(log_k);
    write(log_batch);
    write(log_reference);
    write(log_batch + log_m + log_n);
    write(log_batch + log_m + log_n + log_k);
    write(log_k - log_n);
    write(log_m - log_n);
    const double batch = at_least_one(s.batch);
    write_tiles(write, batch, s.m, s.n, 128, 128, sm_count);
    write_tiles(write, batch, s.m, s.n, 128, 256, sm_count);
    write_tiles(write, batch, s.m, s.n, 256, 128, sm_count);
    write(twos_in(s.m, 8));
    write(twos_in(s.n, 8));
    write(twos_in(s.k, 8));
    write(position_within(s.m, 128));
    write(position_within(s.n, 128));
    write(position_within(s.k, 64));
    write(s.bias ? 1.F : 0.F);
    write(s.accumulates ? 1.F : 0.F);
    write(s.layout == GemmLayout::any ? kUnknown : static_cast<float>(s.layout));
    write(whole_vectors(s.n, s.k));
  }
  static GenericShape generic(const GemmShape& s) {
    return {.sides = {at_least_one(s.m), at_least_one(s.n), at_least_one(s.k)}};
  }
};

// Fused attention, by blocks of queries (attention_blocks.h).
template <>
struct ShapeCost<AttentionShape> {
  static double closed_form_us(const AttentionShape& s, const PlainKernel& of) {
    return attention_us(s, of.dtype, of.direction, of.work, of.device);
  }
  static void reference(const AttentionShape& s, ReferenceAmounts& to) {
    constexpr double kQueriesOfBlock = 128;
    const double heads = at_least_one(s.batch) * at_least_one(s.heads);
    const double depth =
        at_least_one(s.head_dim) + at_least_one(s.value_head_dim > 0 ? s.value_head_dim : s.head_dim);
    const double pairs = attended_pairs(s);
    // A block of queries runs on one SM, so a few blocks leave other SMs idle.
    const double longest =
        std::min(kQueriesOfBlock, at_least_one(s.query_length)) * at_least_one(s.key_length);
    to.flops = 2 * depth * std::max(heads * pairs, to.device.sm_count * longest);
    // Backward has five GEMMs where forward has two.
    if (to.direction != Direction::forward) to.flops *= 2.5;
    const double kv_heads = at_least_one(s.key_value_heads > 0 ? s.key_value_heads : s.heads);
    to.elements =
        depth * at_least_one(s.batch) *
        (at_least_one(s.query_length) * at_least_one(s.heads) + at_least_one(s.key_length) * kv_heads) *
        tensor_passes(to.direction, 1, 2.5);
  }
  static constexpr KernelFeatureSet kFeatures = KernelFeatureSet::attention;
  // In the order of kAttention.
  static void features(const AttentionShape& s, FeatureWriter& write, double sm_count, double log_reference) {
    // Side of a causal square with the same number of pairs.
    const double length = std::max(std::sqrt(2 * attended_pairs(s)) - 0.5, 1.0);
    const double kv_heads = at_least_one(s.key_value_heads > 0 ? s.key_value_heads : s.heads);
    const double log_batch = std::log(at_least_one(s.batch)), log_length = std::log(length);
    const double log_heads = std::log(at_least_one(s.heads)), log_dim = std::log(at_least_one(s.head_dim));
    const double log_group = log_heads - std::log(kv_heads);
    write(log_batch);
    write(log_length);
    write(log_heads);
    write(log_dim);
    write(log_group);
    write(log_reference);
    write(log_batch + log_heads);
    const double sequences = at_least_one(s.batch) * at_least_one(s.heads) / sm_count;
    const double waves = sequences * std::ceil(at_least_one(s.query_length) / 128);
    write(std::log(waves));
    write(std::ceil(waves) / waves);
    write(sequences / std::ceil(sequences));
    write(count_of_blocks((s.head_dim + 31) / 32));
    write(count_of_blocks((s.head_dim + 63) / 64 * 64) / static_cast<float>(at_least_one(s.head_dim)));
    write(position_within(s.head_dim, 32));
    write(position_within(s.head_dim, 64));
    write(log_batch + log_heads - log_group + log_length + log_dim);
    // Masks cost more than their remaining pairs imply: kernels differ, and blocks have unequal lengths.
    write(std::log(at_least_one(s.query_length)));
    write(s.causal ? 1.F : 0.F);
    write(s.window > 0 ? std::log(std::min(at_least_one(s.window) / at_least_one(s.key_length), 1.0)) : 0.0);
  }
  static GenericShape generic(const AttentionShape& s) {
    return {.sides = {at_least_one(s.query_length), at_least_one(s.key_length), at_least_one(s.head_dim)}};
  }
};

// Convolution as an implicit GEMM, with the gain of Winograd transforms where they apply.
template <>
struct ShapeCost<ConvolutionShape> {
  static double closed_form_us(const ConvolutionShape& s, const PlainKernel& of) {
    const double groups = as_double(std::max<std::int64_t>(s.groups, 1));
    const Product p{
        groups,
        as_double(s.batch) * as_double(s.out_height()) * as_double(s.out_width()),
        as_double(s.out_channels) / groups,
        as_double(s.in_channels) / groups * as_double(s.kernel_height) * as_double(s.kernel_width),
        of.dtype,
        of.element,
        of.element};
    const bool winograd = s.kernel_height == 3 && s.kernel_width == 3 && s.stride == 1 && s.dilation == 1 &&
                          !of.device.has_matrix_units(of.dtype);
    const auto timed = [&](const Product& product) {
      Tiling tiling = best_tiling(product, of.device);
      if (winograd) tiling.compute_us /= kWinogradGain;
      // The unfolded input is never written to memory.
      tiling.memory_us = of.work.bytes().value() / (of.device.memory.per_us * Efficiency::copy);
      return tiling.time_us();
    };
    if (of.forward()) return timed(p);
    double time = 0;
    Product dx = p, dw = p;
    dx.n = p.k, dx.k = p.n;
    dw.m = p.k, dw.k = p.m;
    if (of.direction != Direction::weight_gradient) time += timed(dx);
    if (of.direction != Direction::input_gradient) time += timed(dw);
    if (of.direction == Direction::backward) time += of.device.kernel_floor_us;
    return time;
  }
  static void reference(const ConvolutionShape& s, ReferenceAmounts& to) {
    double unused = 0;
    add_reference_products(to.terms, to.device, implicit_gemm(s), to.direction, unused);
    to.elements =
        (at_least_one(s.batch) *
             (at_least_one(s.in_channels) * at_least_one(s.height) * at_least_one(s.width) +
              at_least_one(s.out_channels) * at_least_one(s.out_height()) * at_least_one(s.out_width())) +
         at_least_one(s.out_channels) * at_least_one(s.in_channels / std::max<std::int64_t>(s.groups, 1)) *
             at_least_one(s.kernel_height) * at_least_one(s.kernel_width)) *
        to.terms.products;
  }
  static constexpr KernelFeatureSet kFeatures = KernelFeatureSet::convolution;
  // In the order of kConvolution.
  static void features(const ConvolutionShape& s, FeatureWriter& write, double sm_count,
                       double log_reference) {
    const GemmShape product = implicit_gemm(s);
    const double log_m = std::log(at_least_one(product.m)), log_n = std::log(at_least_one(product.n));
    write(log_m);
    write(log_n);
    write(std::log(at_least_one(product.k)));
    write(std::log(at_least_one(product.batch)));
    write(log_reference);
    write(log_m + log_n);
    write(std::log(at_least_one(s.in_channels)));
    write(std::log(at_least_one(s.batch)));
    write(static_cast<float>(std::max(s.kernel_height, s.kernel_width)));
    write(static_cast<float>(s.stride));
    write(std::log(at_least_one(s.height) * at_least_one(s.width)));
    write(std::log(at_least_one(s.batch) * at_least_one(s.in_channels) * at_least_one(s.height) *
                   at_least_one(s.width)));
    write_tiles(write, at_least_one(product.batch), product.m, product.n, 128, 128, sm_count);
    write(twos_in(s.in_channels, 8));
    write(twos_in(s.out_channels, 8));
    write(position_within(product.n, 128));
    write(static_cast<float>(s.padding));
    // One tap with stride 1 is a GEMM over the pixels.
    const bool pixels_alone = s.kernel_height == 1 && s.kernel_width == 1 && s.stride == 1;
    write(pixels_alone ? 1.F : 0.F);
    write(whole_vectors(s.in_channels, s.out_channels));
    write(std::log(std::min(at_least_one(s.in_channels), kFewChannels)));
    write(std::log(std::min(at_least_one(s.out_channels), kFewChannels)));
  }
  static GenericShape generic(const ConvolutionShape& s) {
    const double groups = at_least_one(s.groups);
    return {.sides = {at_least_one(s.batch) * at_least_one(s.out_height()) * at_least_one(s.out_width()),
                      at_least_one(s.out_channels) / groups,
                      at_least_one(s.in_channels) / groups * at_least_one(s.kernel_height) *
                          at_least_one(s.kernel_width)}};
  }
};

// Sparse GEMM: streamed bytes only; there is no fitted or generic model.
template <>
struct ShapeCost<SparseShape> {
  static double closed_form_us(const SparseShape&, const PlainKernel& of) {
    return of.streamed(Efficiency::sparse);
  }
  static void reference(const SparseShape&, ReferenceAmounts&) {}
  static constexpr KernelFeatureSet kFeatures = KernelFeatureSet::none;
  static void features(const SparseShape&, FeatureWriter&, double, double) {}
  static GenericShape generic(const SparseShape&) { return {}; }
};

}  // namespace stepcast::detail

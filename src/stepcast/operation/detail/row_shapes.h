// Device-independent properties of operations on rows.
#pragma once

#include <string>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "stepcast/operation/detail/operation_names.h"
#include "stepcast/operation/detail/shape_facts.h"

namespace stepcast::detail {

// Normalisation.
template <>
struct ShapeTraits<NormShape> {
  static constexpr auto fields() {
    using S = NormShape;
    return std::tuple{ShapeField{"kind", &S::kind}, ShapeField{"rows", &S::rows, 0},
                      ShapeField{"cols", &S::cols, 0}, ShapeField{"fused", &S::fused}};
  }
  static std::string_view family(const NormShape& s) {
    if (s.kind == NormKind::rms_norm && !s.fused) return "rms_norm_unfused";
    return to_string(s.kind);
  }
  static KernelClass kernel_class(const NormShape&) { return KernelClass::normalization; }
  static std::string describe(const NormShape& s) {
    return fmt::format("rows={} cols={}{}", s.rows, s.cols, s.fused ? "" : " unfused");
  }
  static std::string problem(const NormShape&) { return {}; }
  static Work work(const NormShape& s, const AskedWork& of) {
    const double elements = real_of(s.rows) * real_of(s.cols);
    const double tensor = elements * of.element;
    const bool batch_norm = s.kind == NormKind::batch_norm;
    const bool rms = s.kind == NormKind::rms_norm;
    // Parameters: a weight, and except for RMS norm a bias, per channel (batch norm) or per column (others).
    const double parameters = real_of(batch_norm ? s.rows : s.cols) * of.element;
    // Per row: 1 / root mean square, or mean and 1 / standard deviation.
    const double statistics = real_of(s.rows) * kBytesOfStatistic * (rms ? 1 : 2);
    if (!s.fused && rms) {
      // Norm of the rows, quotient, multiplication by the weight; backward repeats each for its operands.
      return of.forward() ? make_work(elements * 4, 3 * tensor + parameters, 2 * tensor, 5)
                          : make_work(elements * 12, 10 * tensor + parameters, 6 * tensor, 14);
    }
    if (of.forward()) {
      // Layer norm: 1 for the sum, 3 for the squares of the differences, 2 to normalise, 2 for weight and
      // bias. RMS norm: 2 for the squares, 1 to normalise, 1 for the weight.
      const double running = batch_norm ? statistics : 0;
      return make_work(elements * (rms ? 4 : 8), tensor + parameters * (rms ? 1 : 2) + running,
                       tensor + statistics + running);
    }
    // Layer norm: 2 for the normalised x, 1 for dy * weight, 3 for the two sums, 4 for dx, 3 for the
    // gradients of weight and bias. Batch norm sums before the multiplication by the weight. RMS norm: 1, 1,
    // 2, 3, 2.
    const double flops_per_element = rms ? 9 : batch_norm ? 9 : 13;
    return make_work(elements * flops_per_element, 2 * tensor + parameters + statistics,
                     tensor + parameters * (rms ? 1 : 2), batch_norm ? 1 : 2);
  }
  static NormShape smallest(NormShape s) {
    s.rows = 1;
    s.cols = 32;
    return s;
  }
  static bool grow(NormShape& s, const BatchGrowth& batch, Direction, bool) {
    return s.kind == NormKind::batch_norm ? batch.grow(s.cols) : batch.grow(s.rows);
  }
};

// Softmax.
template <>
struct ShapeTraits<SoftmaxShape> {
  static constexpr auto fields() {
    using S = SoftmaxShape;
    return std::tuple{ShapeField{"kind", &S::kind}, ShapeField{"rows", &S::rows, 0},
                      ShapeField{"cols", &S::cols, 0}};
  }
  static std::string_view family(const SoftmaxShape& s) {
    return s.kind == SoftmaxKind::causal_masked ? "causal_softmax" : "softmax";
  }
  static KernelClass kernel_class(const SoftmaxShape&) { return KernelClass::normalization; }
  static std::string describe(const SoftmaxShape& s) {
    return fmt::format("{}rows={} cols={}", s.kind == SoftmaxKind::log_softmax ? "log " : "", s.rows, s.cols);
  }
  static std::string problem(const SoftmaxShape&) { return {}; }
  static Work work(const SoftmaxShape& s, const AskedWork& of) {
    double computed = real_of(s.rows) * real_of(s.cols);
    const double all = computed;
    const bool masked = s.kind == SoftmaxKind::causal_masked;
    // Above the diagonal nothing is read; the zeros there are written.
    if (masked) computed = real_of(s.rows) * (real_of(s.cols) + 1) / 2;
    const double scale = masked ? computed : 0;
    // Maximum, difference, exponential, sum, quotient; backward: multiplication, sum, difference,
    // multiplication.
    if (of.forward()) return make_work(5 * computed + scale, computed * of.element, all * of.element);
    return make_work(4 * computed + scale, 2 * computed * of.element, all * of.element);
  }
  static SoftmaxShape smallest(SoftmaxShape s) {
    s.rows = 1;
    s.cols = 32;
    return s;
  }
  static bool grow(SoftmaxShape& s, const BatchGrowth& batch, Direction, bool) { return batch.grow(s.rows); }
};

// Cross-entropy.
template <>
struct ShapeTraits<CrossEntropyShape> {
  static constexpr auto fields() {
    using S = CrossEntropyShape;
    return std::tuple{ShapeField{"rows", &S::rows, 0}, ShapeField{"classes", &S::classes, 0},
                      ShapeField{"fused", &S::fused}};
  }
  static std::string_view family(const CrossEntropyShape&) { return "cross_entropy"; }
  static KernelClass kernel_class(const CrossEntropyShape&) { return KernelClass::normalization; }
  static std::string describe(const CrossEntropyShape& s) {
    return fmt::format("rows={} classes={}{}", s.rows, s.classes, s.fused ? " fused" : "");
  }
  static std::string problem(const CrossEntropyShape&) { return {}; }
  static Work work(const CrossEntropyShape& s, const AskedWork& of) {
    const double logits = real_of(s.rows) * real_of(s.classes);
    const double targets = real_of(s.rows) * kBytesOfIndex;
    const double losses = real_of(s.rows) * kBytesOfStatistic;
    const double tensor = logits * of.element;
    if (of.forward()) {
      // Fused: the log-sum-exp is kept instead of the log-probabilities.
      if (s.fused) return make_work(4 * logits, tensor + targets, 2 * losses);
      return make_work(5 * logits, tensor + targets + real_of(s.rows) * of.element, tensor + losses, 3);
    }
    if (s.fused) return make_work(3 * logits, tensor + targets + 2 * losses, tensor);
    // The gradient of the log-probabilities is a separate tensor: filled, set at the targets, read back.
    return make_work(3 * logits, 2 * tensor + targets + losses, 2 * tensor, 3);
  }
  static CrossEntropyShape smallest(CrossEntropyShape s) {
    s.rows = 1;
    s.classes = 32;
    return s;
  }
  static bool grow(CrossEntropyShape& s, const BatchGrowth& batch, Direction, bool) {
    return batch.grow(s.rows);
  }
};

// Reductions.
template <>
struct ShapeTraits<ReductionShape> {
  static constexpr auto fields() {
    using S = ReductionShape;
    return std::tuple{ShapeField{"rows", &S::rows, 0}, ShapeField{"cols", &S::cols, 0}};
  }
  static std::string_view family(const ReductionShape&) { return "reduction"; }
  static KernelClass kernel_class(const ReductionShape&) { return KernelClass::reduction; }
  static std::string describe(const ReductionShape& s) {
    return fmt::format("rows={} cols={}", s.rows, s.cols);
  }
  static std::string problem(const ReductionShape&) { return {}; }
  static Work work(const ReductionShape& s, const AskedWork& of) {
    const double rows = real_of(s.rows) * of.element;
    const double elements = real_of(s.rows) * real_of(s.cols);
    if (of.forward()) return make_work(elements, elements * of.element, rows);
    return make_work(elements, rows, elements * of.element);
  }
  static ReductionShape smallest(ReductionShape s) {
    s.rows = 1;
    s.cols = 16;
    return s;
  }
  static bool grow(ReductionShape& s, const BatchGrowth& batch, Direction, bool backward) {
    if (backward && batch.grow(s.cols)) return true;
    return batch.grow(s.rows) || batch.grow(s.cols);
  }
};

}  // namespace stepcast::detail

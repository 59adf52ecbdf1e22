// Costs of operations that work on rows: norms, softmax, cross-entropy and reductions.
#pragma once

#include <algorithm>

#include "stepcast/cost/detail/shape_cost_facts.h"
#include "stepcast/operation/operation.h"

namespace stepcast::detail {

// Channels per SM at a time: PyTorch's batch norm gives a channel to one block of 512 threads, and an SM has
// room for 2,048.
inline constexpr double kChannelsOfUnit = 4;

// Norms stream their tensors; fused ones also pay per row and along the chain of elements of a row.
template <>
struct ShapeCost<NormShape> {
  static double closed_form_us(const NormShape& s, const PlainKernel& of) {
    if (!s.fused)
      return of.streamed(of.forward() ? Efficiency::norm_unfused : Efficiency::norm_unfused_backward);
    return of.streamed(of.forward() ? Efficiency::norm : Efficiency::norm_backward);
  }
  static void reference(const NormShape& s, ReferenceAmounts& to) {
    to.elements = at_least_one(s.rows) * at_least_one(s.cols) * tensor_passes(to.direction, 2, 3);
    if (!s.fused) return;
    to.units = at_least_one(s.rows);
    to.chain = at_least_one(s.cols);
    // Batch norm: more channels than fit at once run in turns.
    if (s.kind == NormKind::batch_norm)
      to.chain *= std::max(1.0, at_least_one(s.rows) / (kChannelsOfUnit * to.device.sm_count));
  }
  static constexpr KernelFeatureSet kFeatures = KernelFeatureSet::rows;
  static void features(const NormShape& s, FeatureWriter& write, double, double log_reference) {
    write_rows(write, s.rows, s.cols, static_cast<int>(s.kind), log_reference);
  }
  static GenericShape generic(const NormShape& s) { return {.row_length = static_cast<double>(s.cols)}; }
};

// Softmax, over whole or causally masked rows.
template <>
struct ShapeCost<SoftmaxShape> {
  static double closed_form_us(const SoftmaxShape& s, const PlainKernel& of) {
    if (s.kind == SoftmaxKind::causal_masked)
      return of.streamed(of.forward() ? Efficiency::masked_softmax : Efficiency::masked_softmax_backward);
    return of.streamed(of.element <= 2 ? Efficiency::softmax_half : Efficiency::softmax);
  }
  static void reference(const SoftmaxShape& s, ReferenceAmounts& to) {
    to.elements = at_least_one(s.rows) * at_least_one(s.cols) * tensor_passes(to.direction, 2, 3);
  }
  static constexpr KernelFeatureSet kFeatures = KernelFeatureSet::rows;
  static void features(const SoftmaxShape& s, FeatureWriter& write, double, double log_reference) {
    write_rows(write, s.rows, s.cols, static_cast<int>(s.kind), log_reference);
  }
  static GenericShape generic(const SoftmaxShape& s) { return {.row_length = static_cast<double>(s.cols)}; }
};

// Cross-entropy over the classes of each row.
template <>
struct ShapeCost<CrossEntropyShape> {
  static double closed_form_us(const CrossEntropyShape&, const PlainKernel& of) {
    return of.streamed(Efficiency::cross_entropy);
  }
  static void reference(const CrossEntropyShape& s, ReferenceAmounts& to) {
    to.elements = at_least_one(s.rows) * at_least_one(s.classes) * tensor_passes(to.direction, 2, 2);
  }
  static constexpr KernelFeatureSet kFeatures = KernelFeatureSet::rows;
  static void features(const CrossEntropyShape& s, FeatureWriter& write, double, double log_reference) {
    write_rows(write, s.rows, s.classes, s.fused ? 1 : 0, log_reference);
  }
  static GenericShape generic(const CrossEntropyShape& s) {
    return {.row_length = static_cast<double>(s.classes)};
  }
};

// Sums over the columns of each row.
template <>
struct ShapeCost<ReductionShape> {
  static double closed_form_us(const ReductionShape&, const PlainKernel& of) {
    return of.streamed(Efficiency::reduction);
  }
  static void reference(const ReductionShape& s, ReferenceAmounts& to) {
    to.elements = at_least_one(s.rows) * (at_least_one(s.cols) + 1);
  }
  static constexpr KernelFeatureSet kFeatures = KernelFeatureSet::rows;
  static void features(const ReductionShape& s, FeatureWriter& write, double, double log_reference) {
    write_rows(write, s.rows, s.cols, 0, log_reference);
  }
  static GenericShape generic(const ReductionShape&) { return {}; }
};

}  // namespace stepcast::detail

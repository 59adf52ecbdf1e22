// Inputs of fitted kernel models: a short vector of numbers per kind of shape, the same in the fit and in the
// forecast.
//
// Sizes enter as logarithms. Where hardware works in steps (tiles of a GEMM, vectors of a load), the position
// within the step enters too. A number that the operation does not state is NaN; models replace it by a
// typical value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "stepcast/operation/operation.h"

namespace stepcast {

// One set per kind of shape. The numbers and their order belong to a name for ever: a set with additional
// numbers at its end gets a new name.
enum class KernelFeatureSet : std::uint8_t {
  none,  // no fitted model for this kind of shape
  matrix,
  attention,
  convolution,
  rows,      // norms, softmax, cross-entropy, reductions
  elements,  // element-wise arithmetic, data movement, transfers
  lookup,
  optimizer,
};
// The current name in records: "matrix_2", ...
[[nodiscard]] std::string_view to_string(KernelFeatureSet set);
// Also accepts former names. None: unknown.
[[nodiscard]] std::optional<KernelFeatureSet> parse_kernel_feature_set(std::string_view text);
// Number of features in records of this name: fewer than in the set where it has grown since ("attention_1").
// 0: unknown.
[[nodiscard]] std::size_t stated_features(std::string_view text);
[[nodiscard]] KernelFeatureSet kernel_feature_set_of(const Operation& operation);

inline constexpr std::size_t kMostKernelFeatures = 28;

// Name and role of one feature.
struct KernelFeature {
  std::string_view name;
  // An amount: values outside of the measured range mean extrapolation. False: a category or a remainder.
  bool is_size;
  // The total work: far below the measured range, fitted times consist mostly of launches.
  bool is_amount = false;
  // One of a few unordered values: a layout, a function.
  bool is_discrete = false;
};
[[nodiscard]] std::span<const KernelFeature> kernel_features_of(KernelFeatureSet set);

// Fills `out` with the features of the set. `log_reference`: logarithm of the reference time in us
// (reference_time.h). Extents of zero count as one.
void compute_kernel_features(const Operation& operation, double sm_count, double log_reference,
                             std::span<float, kMostKernelFeatures> out);

}  // namespace stepcast

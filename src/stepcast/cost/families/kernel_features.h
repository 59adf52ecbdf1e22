// What a fitted kernel model sees of an Operation: a short vector of numbers per kind of shape, the same when
// the model is fitted and when it is asked.
//
// Sizes enter as logarithms; where hardware works in steps (tiles of a matrix product, vectors of a load) the
// position within the step enters too. A number that the operation does not say is NaN; models put a typical
// value in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "stepcast/operation/operation.h"

namespace stepcast {

// One set per kind of shape. The numbers and their order belong to a name for ever: a set that grows at its
// end gets a new one.
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
// "matrix_1", ...: what records call it.
[[nodiscard]] std::string_view to_string(KernelFeatureSet set);
[[nodiscard]] std::optional<KernelFeatureSet> parse_kernel_feature_set(std::string_view text);
// How many features records of this name have: fewer than the set, where it has grown since ("attention_1").
[[nodiscard]] std::size_t stated_features(std::string_view text);
[[nodiscard]] KernelFeatureSet kernel_feature_set_of(const Operation& operation);

inline constexpr std::size_t kMostKernelFeatures = 28;

struct KernelFeature {
  std::string_view name;
  // An amount: outside of the measured amounts means extrapolation. False: a category or a remainder.
  bool is_size;
  // All of the work: where this is far below what was measured, fitted times hold launches and little else.
  bool is_amount = false;
  // One of a few values with no order between them: a layout, a function.
  bool is_discrete = false;
};
[[nodiscard]] std::span<const KernelFeature> kernel_features_of(KernelFeatureSet set);

// Fills `out` with as many numbers as the set has features. `log_reference`: logarithm of the reference time
// in us (reference_time.h). Extents of zero count as one.
void compute_kernel_features(const Operation& operation, double sm_count, double log_reference,
                             std::span<float, kMostKernelFeatures> out);

}  // namespace stepcast

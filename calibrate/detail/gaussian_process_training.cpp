#include "calibrate/detail/gaussian_process_training.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/cost/families/record_numbers.h"

#include "calibrate/detail/minimization.h"

namespace stepcast::detail {
namespace {

// The distance between two shapes per unit of a feature. All sizes have weight 1, in logarithms. The other weights are for
// properties derived from sizes that select kernels: whole vectors of the innermost extents, few channels, pixel counts only.
// Tuned on held-out shapes of the H100 in data/measured; those of the H200 were not used.
struct ScaleOfFeature {
  KernelFeatureSet set;
  std::string_view feature;
  float scale;
};
constexpr ScaleOfFeature kScales[] = {
    {KernelFeatureSet::matrix, "log_m", 1},
    {KernelFeatureSet::matrix, "log_n", 1},
    {KernelFeatureSet::matrix, "log_k", 1},
    {KernelFeatureSet::matrix, "log_batch", 1},
    {KernelFeatureSet::matrix, "twos_in_n", 0.1F},
    {KernelFeatureSet::matrix, "twos_in_k", 0.1F},
    {KernelFeatureSet::matrix, "layout", 2},
    {KernelFeatureSet::matrix, "bias", 1},
    {KernelFeatureSet::matrix, "accumulates", 1},
    {KernelFeatureSet::matrix, "whole_vectors", 0.8F},
    {KernelFeatureSet::attention, "log_batch", 1},
    {KernelFeatureSet::attention, "log_length", 1},
    {KernelFeatureSet::attention, "log_heads", 1},
    {KernelFeatureSet::attention, "log_head_dim", 2},
    {KernelFeatureSet::attention, "log_query_heads_per_key_head", 0.5F},
    {KernelFeatureSet::attention, "log_queries", 1},
    {KernelFeatureSet::attention, "causal", 1},
    {KernelFeatureSet::attention, "log_window", 1},
    {KernelFeatureSet::convolution, "log_m", 1},
    {KernelFeatureSet::convolution, "log_n", 1},
    {KernelFeatureSet::convolution, "log_groups", 1},
    {KernelFeatureSet::convolution, "log_in_channels", 1},
    {KernelFeatureSet::convolution, "kernel", 0.4F},
    {KernelFeatureSet::convolution, "stride", 1},
    {KernelFeatureSet::convolution, "pixels_alone", 4},
    {KernelFeatureSet::convolution, "whole_vectors", 0.5F},
    {KernelFeatureSet::convolution, "log_few_in_channels", 1},
    {KernelFeatureSet::convolution, "log_few_out_channels", 1},
    {KernelFeatureSet::rows, "log_rows", 1},
    {KernelFeatureSet::rows, "log_cols", 1},
    {KernelFeatureSet::rows, "twos_in_cols", 0.1F},
    {KernelFeatureSet::rows, "kind", 2},
    {KernelFeatureSet::elements, "log_elements", 1},
    {KernelFeatureSet::elements, "log_inner", 1},
    {KernelFeatureSet::elements, "twos_in_inner", 0.1F},
    {KernelFeatureSet::elements, "twos_in_elements", 0.1F},
    {KernelFeatureSet::elements, "tensors", 1},
    {KernelFeatureSet::elements, "function", 2},
    {KernelFeatureSet::lookup, "log_rows", 0.5F},
    {KernelFeatureSet::lookup, "log_dim", 1},
    {KernelFeatureSet::lookup, "log_lookups", 1},
    {KernelFeatureSet::lookup, "twos_in_dim", 0.1F},
    {KernelFeatureSet::lookup, "log_pooling", 1},
    {KernelFeatureSet::lookup, "log_tables", 1},
    {KernelFeatureSet::optimizer, "log_parameters", 1},
    {KernelFeatureSet::optimizer, "log_tensors", 1},
    {KernelFeatureSet::optimizer, "implementation", 3},
    {KernelFeatureSet::optimizer, "kind", 1},
};
constexpr ScaleOfFeature kScalesOfSizes[] = {
    {KernelFeatureSet::rows, "log_elements", 1},  {KernelFeatureSet::rows, "log_cols", 1},
    {KernelFeatureSet::rows, "kind", 2},          {KernelFeatureSet::elements, "log_elements", 1},
    {KernelFeatureSet::elements, "log_inner", 1}, {KernelFeatureSet::elements, "function", 2},
};
// Candidates for the reach (in scaled features) and for the variance of one measurement relative to the variance of the
// residual. With a longer reach than an e-fold of four sizes and less noise, few points become polynomials that swing
// between the points.
constexpr double kReaches[] = {0.25, 0.5, 1, 2, 4};
constexpr double kNoises[] = {0.01, 0.05, 0.2};
// Sizes do not explain everything: the unexplained rest is noise. With fewer points than this, the reach cannot be fitted.
constexpr double kNoisesOfSizes[] = {0.05, 0.2, 1};
constexpr double kUsualReach[] = {2}, kUsualNoise[] = {0.2};
constexpr std::size_t kFewPoints = 40;
// Errors below this count as this small in the robust mean that selects a candidate.
constexpr double kSmallError = 0.01;

double robust_mean(std::span<const double> errors) {
  double sum = 0;
  for (const double e : errors) sum += std::sqrt(e * e + kSmallError * kSmallError);
  return sum / static_cast<double>(errors.size());
}

std::vector<double> squared_distances(std::span<const float> rows, std::size_t n,
                                      std::span<const float> scale) {
  std::vector<double> out(n * n, 0.0);
  const std::size_t n_features = scale.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      double sum = 0;
      for (std::size_t f = 0; f < n_features; ++f) {
        const double d =
            static_cast<double>((rows[i * n_features + f] - rows[j * n_features + f]) * scale[f]);
        sum += d * d;
      }
      out[i * n + j] = out[j * n + i] = sum;
    }
  return out;
}

struct Process {
  double left_over = std::numeric_limits<double>::infinity();
  double reach = 0;
  std::vector<double> weights;
};

// Leave-one-out errors from the inverse of the covariance: point i is off by weight_i / inverse_ii without itself.
Process solved(std::span<const double> distances, std::span<const double> targets,
               std::span<const float> row_weights, double reach, double noise) {
  const std::size_t n = targets.size();
  std::vector<double> matrix(n * n);
  for (std::size_t i = 0; i < n * n; ++i)
    matrix[i] = GaussianProcess::covariance(distances[i] / (reach * reach));
  for (std::size_t i = 0; i < n; ++i)
    matrix[i * n + i] += noise / std::max(static_cast<double>(row_weights[i]), 1.0);
  if (!cholesky(matrix, n)) return {};
  const std::vector<double> inverse = inverse_diagonal(matrix, n);
  Process out{.reach = reach, .weights = std::vector<double>(targets.begin(), targets.end())};
  cholesky_solve(matrix, n, out.weights);
  std::vector<double> errors(n);
  for (std::size_t i = 0; i < n; ++i) errors[i] = out.weights[i] / inverse[i];
  out.left_over = robust_mean(errors);
  return out;
}

}  // namespace

GaussianProcess::Parameters train_gaussian_process(KernelFeatureSet set, ProcessOver over,
                                                   std::span<const float> rows,
                                                   std::span<const float> targets,
                                                   std::span<const float> weights) {
  const bool sizes = over == ProcessOver::sizes, few = sizes && targets.size() < kFewPoints;
  using Numbers = std::span<const double>;
  const Numbers reaches = few ? kUsualReach : Numbers{kReaches};
  const Numbers noises = few ? Numbers{kUsualNoise} : sizes ? kNoisesOfSizes : Numbers{kNoises};
  const std::span<const KernelFeature> names = kernel_features_of(set);
  const std::size_t n = targets.size(), n_features = names.size();
  GaussianProcess::Parameters out{.scale = std::vector<float>(n_features, 0.F)};
  for (const ScaleOfFeature& s : sizes ? std::span<const ScaleOfFeature>{kScalesOfSizes} : kScales) {
    if (s.set != set) continue;
    const auto f =
        static_cast<std::size_t>(std::ranges::find(names, s.feature, &KernelFeature::name) - names.begin());
    // A feature with equal values at all points does not separate any of them.
    for (std::size_t i = 1; i < n; ++i)
      if (rows[i * n_features + f] != rows[f]) out.scale[f] = s.scale;
  }
  const std::vector<double> distances = squared_distances(rows, n, out.scale);
  const std::vector<double> wanted(targets.begin(), targets.end());
  Process best;
  for (const double reach : reaches)
    for (const double noise : noises)
      if (Process p = solved(distances, wanted, weights, reach, noise); p.left_over < best.left_over)
        best = std::move(p);
  for (float& scale : out.scale)
    scale = static_cast<float>(rounded(static_cast<double>(scale) / best.reach, 4));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t f = 0; f < n_features; ++f)
      if (out.scale[f] > 0)
        out.points.push_back(static_cast<std::int32_t>(std::lround(
            static_cast<double>(rows[i * n_features + f] * out.scale[f]) * GaussianProcess::kPartsOfUnit)));
    out.weights.push_back(static_cast<float>(rounded(best.weights[i], 4)));
  }
  return out;
}

}  // namespace stepcast::detail

#include "stepcast/calibrate/detail/perceptron_training.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "stepcast/cost/families/record_numbers.h"

namespace stepcast::detail {
namespace {

// Digits that are kept of every number: the output moves by less than 1e-3.
constexpr int kDigits = 5;

// Uniform in [0, 1), the same on every platform (the distributions of the standard library are not).
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11U) * 0x1p-53; }

// Weights, values and gradients of one layer; inputs run fastest.
struct Layer {
  std::size_t inputs, units, first;  // first: index of its numbers
};

// Adam: steps along a running mean of the gradient, over a running mean of its size.
class Adam {
 public:
  explicit Adam(std::size_t n) : mean_(n), square_(n) {}
  // `shrink`: weights are multiplied by it first.
  void step(std::span<float> weights, std::span<const float> gradient, double rate, float shrink) {
    ++steps_;
    const auto size = static_cast<float>(rate * std::sqrt(1 - std::pow(kSquareKept, steps_)) /
                                         (1 - std::pow(kMeanKept, steps_)));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      mean_[i] += (1 - kMeanKept) * (gradient[i] - mean_[i]);
      square_[i] += (1 - kSquareKept) * (gradient[i] * gradient[i] - square_[i]);
      weights[i] = weights[i] * shrink - size * mean_[i] / (std::sqrt(square_[i]) + 1e-8F);
    }
  }

 private:
  static constexpr float kMeanKept = 0.9F, kSquareKept = 0.99F;
  std::vector<float> mean_, square_;
  int steps_ = 0;
};

}  // namespace

Perceptron::Parameters train_perceptron(std::span<const float> rows, std::size_t n_features,
                                        std::span<const float> targets, std::span<const float> weights,
                                        const PerceptronOptions& options) {
  const std::size_t n = targets.size();
  Perceptron::Parameters p;
  p.widths.push_back(n_features);
  p.widths.insert(p.widths.end(), options.hidden.begin(), options.hidden.end());
  p.widths.push_back(1);
  p.input_mean.resize(n_features);
  p.input_scale.resize(n_features);
  for (std::size_t f = 0; f < n_features; ++f) {
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < n; ++i) mean += static_cast<double>(rows[i * n_features + f]);
    mean /= static_cast<double>(std::max<std::size_t>(n, 1));
    for (std::size_t i = 0; i < n; ++i) {
      const double d = static_cast<double>(rows[i * n_features + f]) - mean;
      square += d * d;
    }
    const double deviation = std::sqrt(square / static_cast<double>(std::max<std::size_t>(n, 1)));
    p.input_mean[f] = static_cast<float>(rounded(mean, kDigits));
    p.input_scale[f] = static_cast<float>(deviation > 1e-6 ? rounded(1 / deviation, kDigits) : 0.0);
  }
  std::vector<Layer> layers;
  for (std::size_t l = 0, first = 0; l + 1 < p.widths.size(); ++l) {
    layers.push_back({p.widths[l], p.widths[l + 1], first});
    first += (p.widths[l] + 1) * p.widths[l + 1];
  }
  std::mt19937_64 random{options.seed};
  p.weights.assign(Perceptron::Parameters::weight_count(p.widths), 0.0F);
  for (const Layer& layer : layers) {
    const double scale = std::sqrt(6.0 / static_cast<double>(layer.inputs + layer.units));
    // The output starts at zero: learning begins from the reference.
    const bool is_output = layer.units == 1;
    for (std::size_t i = 0; i < layer.inputs * layer.units; ++i)
      p.weights[layer.first + i] = static_cast<float>(is_output ? 0 : (2 * uniform(random) - 1) * scale);
  }
  if (n == 0) return p;

  // Targets are scaled to one, so that the learning rate fits all operations.
  double scale = 0;
  for (const float t : targets) scale += static_cast<double>(t) * static_cast<double>(t);
  scale = std::max(std::sqrt(scale / static_cast<double>(n)), 1e-4);

  std::vector<float> inputs(n * n_features);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t f = 0; f < n_features; ++f)
      inputs[i * n_features + f] = (rows[i * n_features + f] - p.input_mean[f]) * p.input_scale[f];
  }
  std::vector<float> gradient(p.weights.size());
  Adam adam{p.weights.size()};
  // Of all layers one after another: sums and their gradients by units, values with the inputs in front.
  std::vector<std::size_t> first_unit{0};
  for (const Layer& layer : layers) first_unit.push_back(first_unit.back() + layer.units);
  std::vector<float> all_sums(first_unit.back()), all_back(first_unit.back());
  std::vector<float> all_values(n_features + first_unit.back());
  float* const sums = all_sums.data();
  float* const back = all_back.data();
  const auto values_into = [&](std::size_t layer) {
    return layer == 0 ? all_values.data() : all_values.data() + n_features + first_unit[layer - 1];
  };
  for (int step = 0; step < options.steps; ++step) {
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    for (std::size_t b = 0; b < options.batch; ++b) {
      const std::size_t row = random() % n;
      std::copy_n(inputs.data() + row * n_features, n_features, values_into(0));
      for (std::size_t l = 0; l < layers.size(); ++l) {
        const Layer& layer = layers[l];
        const float* w = p.weights.data() + layer.first;
        const float* from = values_into(l);
        float* to = values_into(l + 1);
        for (std::size_t unit = 0; unit < layer.units; ++unit) {
          float sum = w[layer.inputs * layer.units + unit];
          for (std::size_t i = 0; i < layer.inputs; ++i) sum += w[unit * layer.inputs + i] * from[i];
          sums[first_unit[l] + unit] = sum;
          to[unit] = l + 1 < layers.size() ? sum / (1 + std::abs(sum)) : sum;
        }
      }
      const float weight = weights.empty() ? 1.0F : weights[row];
      const float wanted = targets[row] / static_cast<float>(scale);
      const float output = *values_into(layers.size());
      back[first_unit[layers.size() - 1]] = weight * (output - wanted) / static_cast<float>(options.batch);
      for (std::size_t l = layers.size(); l-- > 0;) {
        const Layer& layer = layers[l];
        const float* w = p.weights.data() + layer.first;
        const float* from = values_into(l);
        const float* above = back + first_unit[l];
        float* below = l > 0 ? back + first_unit[l - 1] : nullptr;
        float* g = gradient.data() + layer.first;
        if (below != nullptr) std::fill_n(below, layer.inputs, 0.0F);
        for (std::size_t unit = 0; unit < layer.units; ++unit) {
          const float d = above[unit];
          g[layer.inputs * layer.units + unit] += d;
          for (std::size_t i = 0; i < layer.inputs; ++i) g[unit * layer.inputs + i] += d * from[i];
          if (below == nullptr) continue;
          for (std::size_t i = 0; i < layer.inputs; ++i) below[i] += d * w[unit * layer.inputs + i];
        }
        if (below == nullptr) continue;
        for (std::size_t i = 0; i < layer.inputs; ++i) {
          const float slope = 1 / (1 + std::abs(sums[first_unit[l - 1] + i]));
          below[i] *= slope * slope;
        }
      }
    }
    const double progress = static_cast<double>(step) / options.steps;
    const double rate = options.learning_rate * 0.5 * (1 + std::cos(3.14159265358979 * progress));
    adam.step(p.weights, gradient, rate, static_cast<float>(1 - rate * options.weight_decay));
  }
  const Layer& output = layers.back();
  for (std::size_t i = output.first; i < p.weights.size(); ++i) p.weights[i] *= static_cast<float>(scale);
  for (float& w : p.weights) w = static_cast<float>(rounded(static_cast<double>(w), kDigits));
  return p;
}

}  // namespace stepcast::detail

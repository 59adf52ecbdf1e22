#include "calibrate/detail/perceptron_training.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stepcast/cost/families/record_numbers.h"

namespace stepcast::detail {
namespace {

// Digits that are kept of every number: the output moves by less than 1e-3.
constexpr int kDigits = 5;

// Uniform in [0, 1), the same on every platform (the distributions of the standard library are not).
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11U) * 0x1p-53; }

}  // namespace

// Weights, values and gradients of one layer; inputs run fastest.
struct PerceptronTrainer::Layer {
  std::size_t inputs, units, first;  // first: index of its numbers
};

void Adam::step(std::span<float> weights, std::span<const float> gradient, double rate, float shrink) {
  ++steps_;
  const auto size = static_cast<float>(rate * std::sqrt(1 - std::pow(kSquareKept, steps_)) /
                                       (1 - std::pow(kMeanKept, steps_)));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    mean_[i] += (1 - kMeanKept) * (gradient[i] - mean_[i]);
    square_[i] += (1 - kSquareKept) * (gradient[i] * gradient[i] - square_[i]);
    weights[i] = weights[i] * shrink - size * mean_[i] / (std::sqrt(square_[i]) + 1e-8F);
  }
}

PerceptronTrainer::PerceptronTrainer(std::span<const float> rows, std::size_t n_features,
                                     const std::vector<std::size_t>& hidden, std::mt19937_64& random) {
  const std::size_t n = rows.size() / n_features;
  Perceptron::Parameters& p = parameters_;
  p.widths.push_back(n_features);
  p.widths.insert(p.widths.end(), hidden.begin(), hidden.end());
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
  first_unit_.push_back(0);
  for (std::size_t l = 0, first = 0; l + 1 < p.widths.size(); ++l) {
    layers_.push_back({p.widths[l], p.widths[l + 1], first});
    first += (p.widths[l] + 1) * p.widths[l + 1];
    first_unit_.push_back(first_unit_.back() + p.widths[l + 1]);
  }
  p.weights.assign(Perceptron::Parameters::weight_count(p.widths), 0.0F);
  for (const Layer& layer : layers_) {
    const double scale = std::sqrt(6.0 / static_cast<double>(layer.inputs + layer.units));
    // The output starts at zero: learning begins from the reference.
    const bool is_output = layer.units == 1;
    for (std::size_t i = 0; i < layer.inputs * layer.units; ++i)
      p.weights[layer.first + i] = static_cast<float>(is_output ? 0 : (2 * uniform(random) - 1) * scale);
  }
  gradient_.resize(p.weights.size());
  adam_ = Adam{p.weights.size()};
  sums_.resize(first_unit_.back());
  back_.resize(first_unit_.back());
  values_.resize(n_features + first_unit_.back());
}

PerceptronTrainer::PerceptronTrainer(PerceptronTrainer&&) noexcept = default;
PerceptronTrainer::~PerceptronTrainer() = default;

void PerceptronTrainer::scale_inputs(std::span<const float> row, std::span<float> scaled) const {
  for (std::size_t f = 0; f < row.size(); ++f)
    scaled[f] = (row[f] - parameters_.input_mean[f]) * parameters_.input_scale[f];
}

float PerceptronTrainer::output(std::span<const float> scaled) {
  std::copy(scaled.begin(), scaled.end(), values_.begin());
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const float* w = parameters_.weights.data() + layer.first;
    const float* from = values_into(l);
    float* to = values_into(l + 1);
    for (std::size_t unit = 0; unit < layer.units; ++unit) {
      float sum = w[layer.inputs * layer.units + unit];
      for (std::size_t i = 0; i < layer.inputs; ++i) sum += w[unit * layer.inputs + i] * from[i];
      sums_[first_unit_[l] + unit] = sum;
      to[unit] = l + 1 < layers_.size() ? sum / (1 + std::abs(sum)) : sum;
    }
  }
  return *values_into(layers_.size());
}

void PerceptronTrainer::add_gradient(float of_output) {
  back_[first_unit_[layers_.size() - 1]] = of_output;
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    const float* w = parameters_.weights.data() + layer.first;
    const float* from = values_into(l);
    const float* above = back_.data() + first_unit_[l];
    float* below = l > 0 ? back_.data() + first_unit_[l - 1] : nullptr;
    float* g = gradient_.data() + layer.first;
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
      const float slope = 1 / (1 + std::abs(sums_[first_unit_[l - 1] + i]));
      below[i] *= slope * slope;
    }
  }
}

void PerceptronTrainer::step(double rate, double weight_decay) {
  adam_.step(parameters_.weights, gradient_, rate, static_cast<float>(1 - rate * weight_decay));
  std::ranges::fill(gradient_, 0.0F);
}

Perceptron::Parameters PerceptronTrainer::finish(double scale) && {
  const Layer& output = layers_.back();
  std::vector<float>& weights = parameters_.weights;
  for (std::size_t i = output.first; i < weights.size(); ++i) weights[i] *= static_cast<float>(scale);
  for (float& w : weights) w = static_cast<float>(rounded(static_cast<double>(w), kDigits));
  return std::move(parameters_);
}

float* PerceptronTrainer::values_into(std::size_t layer) {
  return layer == 0 ? values_.data() : values_.data() + parameters_.widths.front() + first_unit_[layer - 1];
}

Perceptron::Parameters train_perceptron(std::span<const float> rows, std::size_t n_features,
                                        std::span<const float> targets, std::span<const float> weights,
                                        const PerceptronOptions& options) {
  const std::size_t n = targets.size();
  std::mt19937_64 random{options.seed};
  PerceptronTrainer trainer{rows, n_features, options.hidden, random};
  if (n == 0) return trainer.parameters();

  // Targets are scaled to one, so that the learning rate fits all operations.
  double scale = 0;
  for (const float t : targets) scale += static_cast<double>(t) * static_cast<double>(t);
  scale = std::max(std::sqrt(scale / static_cast<double>(n)), 1e-4);

  std::vector<float> inputs(n * n_features);
  const std::span<float> all{inputs};
  for (std::size_t i = 0; i < n; ++i)
    trainer.scale_inputs(rows.subspan(i * n_features, n_features), all.subspan(i * n_features, n_features));
  for (int step = 0; step < options.steps; ++step) {
    for (std::size_t b = 0; b < options.batch; ++b) {
      const std::size_t row = random() % n;
      const float output = trainer.output(all.subspan(row * n_features, n_features));
      const float weight = weights.empty() ? 1.0F : weights[row];
      const float wanted = targets[row] / static_cast<float>(scale);
      trainer.add_gradient(weight * (output - wanted) / static_cast<float>(options.batch));
    }
    const double progress = static_cast<double>(step) / options.steps;
    trainer.step(options.learning_rate * 0.5 * (1 + std::cos(3.14159265358979 * progress)),
                 options.weight_decay);
  }
  return std::move(trainer).finish(scale);
}

}  // namespace stepcast::detail

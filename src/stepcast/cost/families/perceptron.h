// A small multilayer perceptron with softsign units, x / (1 + |x|): smooth, and without an exponential.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast {

class Perceptron {
 public:
  static constexpr std::size_t kMostWidth = 128;
  static constexpr std::size_t kMostLayers = 6;

  // Of each layer from the inputs to the single output, and all its numbers: per layer the weights, row by
  // row (one row per unit), then the biases. Inputs are centred and scaled first.
  struct Parameters {
    std::vector<std::size_t> widths;
    std::vector<float> input_mean, input_scale;  // x = (input - mean) * scale
    std::vector<float> weights;
    [[nodiscard]] static std::size_t weight_count(std::span<const std::size_t> widths);
  };
  [[nodiscard]] static Result<Perceptron> make(Parameters parameters, std::size_t n_features);
  [[nodiscard]] static Result<Perceptron> read(const JsonValue& value, std::size_t n_features);
  [[nodiscard]] JsonValue write() const;

  // sums[i] += weight * output of row i. Row i starts at rows[i * stride].
  void add(std::span<const float> rows, std::size_t stride, double weight, std::span<double> sums) const;

  [[nodiscard]] const Parameters& parameters() const { return parameters_; }

 private:
  Parameters parameters_;
  std::vector<float> transposed_;  // weights with the units of a layer side by side
};

}  // namespace stepcast

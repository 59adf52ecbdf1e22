// Trains a small multilayer perceptron on squared error (Adam, mini-batches, learning rate falling to zero).
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "stepcast/cost/families/perceptron.h"

namespace stepcast::detail {

// Steps along a running mean of the gradient, over a running mean of its size.
class Adam {
 public:
  explicit Adam(std::size_t n = 0) : mean_(n), square_(n) {}
  // `shrink`: weights are multiplied by it first.
  void step(std::span<float> weights, std::span<const float> gradient, double rate, float shrink);

 private:
  static constexpr float kMeanKept = 0.9F, kSquareKept = 0.99F;
  std::vector<float> mean_, square_;
  int steps_ = 0;
};

// A network while it learns, for a loss that the caller knows:
//
//   const float y = network.output(scaled);
//   network.add_gradient(d);               // of the loss by this very output
//   network.step(rate, decay);             // along the sum of what was added since the last step
class PerceptronTrainer {
 public:
  // Mean and deviation of the inputs are those of `rows`; the first output is 0 for all of them.
  PerceptronTrainer(std::span<const float> rows, std::size_t n_features,
                    const std::vector<std::size_t>& hidden, std::mt19937_64& random);
  PerceptronTrainer(PerceptronTrainer&&) noexcept;
  ~PerceptronTrainer();

  void scale_inputs(std::span<const float> row, std::span<float> scaled) const;
  [[nodiscard]] float output(std::span<const float> scaled);
  void add_gradient(float of_output);
  void step(double rate, double weight_decay);
  [[nodiscard]] const Perceptron::Parameters& parameters() const { return parameters_; }
  // Outputs are multiplied by `scale`; numbers keep five digits.
  [[nodiscard]] Perceptron::Parameters finish(double scale) &&;

 private:
  struct Layer;
  [[nodiscard]] float* values_into(std::size_t layer);

  Perceptron::Parameters parameters_;
  std::vector<Layer> layers_;
  // Of all layers one after another: sums and their gradients by units, values with the inputs in front.
  std::vector<std::size_t> first_unit_;
  std::vector<float> sums_, back_, values_, gradient_;
  Adam adam_;
};

struct PerceptronOptions {
  std::vector<std::size_t> hidden{16, 16};
  int steps = 1500;
  std::size_t batch = 32;
  double learning_rate = 5e-3;
  double weight_decay = 1e-4;
  std::uint64_t seed = 42;
};

// Rows as in train_booster(). The same input and seed give the same network.
[[nodiscard]] Perceptron::Parameters train_perceptron(std::span<const float> rows, std::size_t n_features,
                                                      std::span<const float> targets,
                                                      std::span<const float> weights,
                                                      const PerceptronOptions& options);

}  // namespace stepcast::detail

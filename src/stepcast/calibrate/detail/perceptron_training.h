// Trains a small multilayer perceptron on squared error (Adam, mini-batches, learning rate falling to zero).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stepcast/cost/families/perceptron.h"

namespace stepcast::detail {

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

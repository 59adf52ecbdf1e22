// Regression trees by XGBoost. XGBoost is not linked into the program but into a plug-in (booster_plugin.h), which is loaded when
// the first trees are trained. This header uses only the standard library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stepcast::detail {

struct BoosterOptions {
  int rounds = 64;
  int depth = 6;
  int leaves = 0;  // most leaves of a tree: the split with the largest gain comes first; 0: whole levels
  double learning_rate = 0.15;
  double row_sample = 0.8, column_sample = 0.8;  // of each tree
  double min_child_weight = 2;
  double lambda = 1;    // pulls leaves to zero
  bool forest = false;  // random forest: `rounds` trees in one round, averaged, learning_rate ignored
  std::uint32_t seed = 42;
};

// The trees of a booster in XGBoost's JSON dump. They define the model completely: a prediction is the sum of the leaves
// that a row reaches.
struct BoosterDump {
  std::vector<std::string> trees;
  std::vector<float> predictions;  // of the training rows, computed by XGBoost
  std::string problem;             // empty: all went well
};

// The reason why trees cannot be trained here, and what to install; empty if they can.
[[nodiscard]] const std::string& why_no_trees();

// Trains with squared error on one thread. Row i is rows[i * n_features] to rows[(i + 1) * n_features - 1]; no NaN. The same
// input and seed give the same trees.
[[nodiscard]] BoosterDump train_booster(std::span<const float> rows, std::size_t n_features,
                                        std::span<const float> targets, std::span<const float> weights,
                                        const BoosterOptions& options);

}  // namespace stepcast::detail

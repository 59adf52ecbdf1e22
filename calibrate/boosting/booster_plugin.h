// C interface to the plug-in that trains trees (stepcast-boosting.so). Input: rows. Output: trees as text.
#pragma once

#include <cstdint>

extern "C" {

struct StepcastBoosterJob {
  const float* rows;  // row i starts at rows[i * n_features]; no NaN
  std::uint64_t n_rows, n_features;
  const float* targets;
  const float* weights;  // null: all rows have equal weight
  // As in BoosterOptions (booster.h).
  std::int32_t rounds, depth, leaves, forest;
  double learning_rate, row_sample, column_sample, min_child_weight, lambda;
  std::uint32_t seed;
  // Receives the result: every tree in XGBoost's JSON dump, then the predictions of the rows.
  void* receiver;
  void (*take_tree)(void* receiver, const char* json);
  void (*take_predictions)(void* receiver, const float* values, std::uint64_t n);
};

// Returns null, or an error message that is valid until the next call on this thread. The name changes with the struct.
const char* stepcast_train_booster_2(const StepcastBoosterJob* job);
}

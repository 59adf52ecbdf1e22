// The C interface between fitting and the plug-in that trains trees (stepcast-boosting.so): rows in, trees out as text.
#pragma once

#include <cstdint>

extern "C" {

struct StepcastBoosterJob {
  const float* rows;  // row i is rows[i * n_features] and what follows; no NaN
  std::uint64_t n_rows, n_features;
  const float* targets;
  const float* weights;  // null: all rows weigh the same
  // As in BoosterOptions (booster.h).
  std::int32_t rounds, depth, leaves, forest;
  double learning_rate, row_sample, column_sample, min_child_weight, lambda;
  std::uint32_t seed;
  // What gets the result: every tree in XGBoost's JSON dump, then the predictions of the rows.
  void* receiver;
  void (*take_tree)(void* receiver, const char* json);
  void (*take_predictions)(void* receiver, const float* values, std::uint64_t n);
};

// Null, or what went wrong: good until the next call on this thread. The name changes with the struct.
const char* stepcast_train_booster_2(const StepcastBoosterJob* job);
}

// The plug-in stepcast-boosting.so: the only source file that uses XGBoost.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <xgboost/c_api.h>

#include "calibrate/boosting/booster_plugin.h"

namespace {

class Matrix {
 public:
  Matrix() = default;
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  ~Matrix() {
    if (handle != nullptr) XGDMatrixFree(handle);
  }
  DMatrixHandle handle = nullptr;
};

class Booster {
 public:
  Booster() = default;
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;
  ~Booster() {
    if (handle != nullptr) XGBoosterFree(handle);
  }
  BoosterHandle handle = nullptr;
};

std::vector<std::pair<const char*, std::string>> parameters_of(const StepcastBoosterJob& job) {
  std::vector<std::pair<const char*, std::string>> parameters{
      {"nthread", "1"},
      {"verbosity", "0"},
      {"objective", "reg:squarederror"},
      {"base_score", "0"},
      {"tree_method", "hist"},
      {"max_bin", "128"},
      {"seed", std::to_string(job.seed)},
      {"seed_per_iteration", "1"},
      {"max_depth", std::to_string(job.depth)},
      {"min_child_weight", std::to_string(job.min_child_weight)},
      {"lambda", std::to_string(job.lambda)},
      {"subsample", std::to_string(job.row_sample)},
  };
  if (job.leaves > 0)
    parameters.insert(parameters.end(),
                      {{"grow_policy", "lossguide"}, {"max_leaves", std::to_string(job.leaves)}});
  if (job.forest != 0) {
    parameters.insert(parameters.end(), {{"eta", "1"},
                                         {"num_parallel_tree", std::to_string(job.rounds)},
                                         {"colsample_bynode", std::to_string(job.column_sample)}});
  } else {
    parameters.insert(parameters.end(), {{"eta", std::to_string(job.learning_rate)},
                                         {"colsample_bytree", std::to_string(job.column_sample)}});
  }
  return parameters;
}

}  // namespace

const char* stepcast_train_booster_2(const StepcastBoosterJob* job) {
  const std::uint64_t n = job->n_rows;
  Matrix matrix;
  if (XGDMatrixCreateFromMat(job->rows, n, job->n_features, std::numeric_limits<float>::quiet_NaN(),
                             &matrix.handle) != 0 ||
      XGDMatrixSetFloatInfo(matrix.handle, "label", job->targets, n) != 0)
    return XGBGetLastError();
  if (job->weights != nullptr && XGDMatrixSetFloatInfo(matrix.handle, "weight", job->weights, n) != 0)
    return XGBGetLastError();
  Booster booster;
  if (XGBoosterCreate(&matrix.handle, 1, &booster.handle) != 0) return XGBGetLastError();
  for (const auto& [name, value] : parameters_of(*job))
    if (XGBoosterSetParam(booster.handle, name, value.c_str()) != 0) return XGBGetLastError();
  const int rounds = job->forest != 0 ? 1 : job->rounds;
  for (int round = 0; round < rounds; ++round)
    if (XGBoosterUpdateOneIter(booster.handle, round, matrix.handle) != 0) return XGBGetLastError();
  bst_ulong count = 0;
  const char** trees = nullptr;
  if (XGBoosterDumpModelEx(booster.handle, "", 0, "json", &count, &trees) != 0) return XGBGetLastError();
  for (bst_ulong i = 0; i < count; ++i) job->take_tree(job->receiver, trees[i]);
  const float* predictions = nullptr;
  if (XGBoosterPredict(booster.handle, matrix.handle, 0, 0, 0, &count, &predictions) != 0)
    return XGBGetLastError();
  job->take_predictions(job->receiver, predictions, count);
  return nullptr;
}

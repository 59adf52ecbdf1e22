#include "calibrate/boosting/xgboost_booster.h"

#include <cmath>
#include <limits>
#include <utility>

#if STEPCAST_HAVE_XGBOOST
#include <xgboost/c_api.h>
#endif

namespace stepcast::detail {

#if STEPCAST_HAVE_XGBOOST

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

std::string text(double value) { return std::to_string(value); }

}  // namespace

bool have_xgboost() { return true; }

BoosterDump train_booster(std::span<const float> rows, std::size_t n_features, std::span<const float> targets,
                          std::span<const float> weights, const BoosterOptions& options) {
  BoosterDump out;
  const auto failed = [&out](int code) {
    if (code != 0) out.problem = XGBGetLastError();
    return code != 0;
  };
  const std::size_t n = targets.size();
  Matrix matrix;
  if (failed(XGDMatrixCreateFromMat(rows.data(), n, n_features, std::numeric_limits<float>::quiet_NaN(),
                                    &matrix.handle)))
    return out;
  if (failed(XGDMatrixSetFloatInfo(matrix.handle, "label", targets.data(), n))) return out;
  if (!weights.empty() && failed(XGDMatrixSetFloatInfo(matrix.handle, "weight", weights.data(), n)))
    return out;
  Booster booster;
  if (failed(XGBoosterCreate(&matrix.handle, 1, &booster.handle))) return out;
  std::vector<std::pair<const char*, std::string>> parameters{
      {"nthread", "1"},
      {"verbosity", "0"},
      {"objective", "reg:squarederror"},
      {"base_score", "0"},
      {"tree_method", "hist"},
      {"max_bin", "128"},
      {"seed", std::to_string(options.seed)},
      {"seed_per_iteration", "1"},
      {"max_depth", std::to_string(options.depth)},
      {"min_child_weight", text(options.min_child_weight)},
      {"lambda", text(options.lambda)},
      {"subsample", text(options.row_sample)},
  };
  int rounds = options.rounds;
  if (options.forest) {
    parameters.insert(parameters.end(), {{"eta", "1"},
                                         {"num_parallel_tree", std::to_string(options.rounds)},
                                         {"colsample_bynode", text(options.column_sample)}});
    rounds = 1;
  } else {
    parameters.insert(parameters.end(), {{"eta", text(options.learning_rate)},
                                         {"colsample_bytree", text(options.column_sample)}});
  }
  for (const auto& [name, value] : parameters) {
    if (failed(XGBoosterSetParam(booster.handle, name, value.c_str()))) return out;
  }
  for (int round = 0; round < rounds; ++round) {
    if (failed(XGBoosterUpdateOneIter(booster.handle, round, matrix.handle))) return out;
  }
  bst_ulong count = 0;
  const char** dumps = nullptr;
  if (failed(XGBoosterDumpModelEx(booster.handle, "", 0, "json", &count, &dumps))) return out;
  for (bst_ulong i = 0; i < count; ++i) out.trees.emplace_back(dumps[i]);
  const float* predictions = nullptr;
  if (failed(XGBoosterPredict(booster.handle, matrix.handle, 0, 0, 0, &count, &predictions))) return out;
  out.predictions.assign(predictions, predictions + count);
  return out;
}

#else

bool have_xgboost() { return false; }

BoosterDump train_booster(std::span<const float>, std::size_t, std::span<const float>, std::span<const float>,
                          const BoosterOptions&) {
  BoosterDump out;
  out.problem = "this program was built without XGBoost";
  return out;
}

#endif

}  // namespace stepcast::detail

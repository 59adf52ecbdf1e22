// The values of discrete features (layout of a GEMM, function of an element-wise kernel) that a record was
// fitted on, with their amounts of work.
//
// A learned correction may cut on such a feature anywhere: ten tiny GEMMs in one layout are enough to send
// every large one in that layout to a leaf without large GEMMs. So a record answers for a value only where it
// has enough rows of it; elsewhere it answers with the value of most of its rows.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"
#include "stepcast/cost/families/kernel_features.h"

namespace stepcast {

// A value needs at least this number of rows, over at least this range of work. The range is also sufficient
// where it covers all rows of the record.
inline constexpr std::size_t kLeastRowsOfValue = 40;
inline constexpr double kLeastDecadesOfWork = 2;

// One value of one feature.
struct MeasuredValue {
  std::size_t feature = 0;  // index in kernel_features_of()
  float value = 0;
  std::size_t n_rows = 0;
  double log_least_work = 0, log_most_work = 0;  // range of the work feature, in ln
};

// All values of a record, and the rule above.
class MeasuredValues {
 public:
  // Counts the values in `rows` (row by row, all features of the set); row i counts `weight[i]` times.
  [[nodiscard]] static MeasuredValues of_rows(KernelFeatureSet set, std::span<const float> rows,
                                              std::span<const float> weight);
  // Errors: an unknown or not discrete feature, an impossible count or range.
  [[nodiscard]] static Result<MeasuredValues> read(KernelFeatureSet set, const JsonValue& array);
  [[nodiscard]] JsonValue write() const;

  // For corrections that stay local (Gaussian processes): each measured value answers, at all amounts of
  // work.
  void answer_for_each();

  [[nodiscard]] const std::vector<MeasuredValue>& values() const { return values_; }
  // Whether the record answers for the value at the middle of its measured work.
  [[nodiscard]] bool answers(const MeasuredValue& value) const;
  // Whether it answers for the value at this amount of work, in ln.
  [[nodiscard]] bool answers(std::size_t feature, float value, double log_work) const;

  // Replaces each value without an answer by the most frequent one. Returns whether it replaced any.
  bool replace(std::span<float> features) const;

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  // Precomputed form of one discrete feature for replace().
  struct Feature {
    std::size_t index = 0;
    float usual = 0;  // the most frequent value
    struct Range {
      float value;
      double log_least, log_most;
    };
    std::vector<Range> answered;  // without the usual value
  };
  // Computes `features_` from `values_`.
  void prepare();

  KernelFeatureSet set_ = KernelFeatureSet::none;
  std::size_t amount_ = kNone;
  bool for_each_ = false;
  std::vector<MeasuredValue> values_;
  std::vector<Feature> features_;
};

}  // namespace stepcast

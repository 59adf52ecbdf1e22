// Which values of discrete features (layout of a product, function of an element-wise kernel) a record was
// fitted on, and over which amounts of work.
//
// A learned correction may cut on such a feature anywhere: ten tiny products in one layout are enough to send
// every large one in that layout to a leaf that knows nothing of large products. So a record answers for a
// value only where it saw enough of it; elsewhere with the value that most of its rows have.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"
#include "stepcast/cost/families/kernel_features.h"

namespace stepcast {

// Fewer rows of a value, or rows over less work than this, say too little. Work counts as wide enough also
// where it is all that the record saw.
inline constexpr std::size_t kLeastRowsOfValue = 40;
inline constexpr double kLeastDecadesOfWork = 2;

struct MeasuredValue {
  std::size_t feature = 0;  // index in kernel_features_of()
  float value = 0;
  std::size_t n_rows = 0;
  double log_least_work = 0, log_most_work = 0;  // of the feature that is the amount of work
};

class MeasuredValues {
 public:
  // Counts the values of all rows, which have `n_features` numbers each; row i stands for `weight[i]` rows.
  [[nodiscard]] static MeasuredValues of_rows(KernelFeatureSet set, std::span<const float> rows,
                                              std::span<const float> weight);
  // Errors: a feature that is not known or not discrete, a count or range that cannot be.
  [[nodiscard]] static Result<MeasuredValues> read(KernelFeatureSet set, const JsonValue& array);
  [[nodiscard]] JsonValue write() const;

  // For corrections that carry a point no farther than its neighbours are: every value that was measured at all answers,
  // at all amounts of work.
  void answer_for_each();

  [[nodiscard]] const std::vector<MeasuredValue>& values() const { return values_; }
  // True if the record answers for the value itself at some amount of work.
  [[nodiscard]] bool answers(const MeasuredValue& value) const;
  // The same at this amount of work, in ln.
  [[nodiscard]] bool answers(std::size_t feature, float value, double log_work) const;

  // Puts the value that most rows have in the place of each that the record does not answer for. True if it
  // replaced one.
  bool replace(std::span<float> features) const;

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  // What replace() looks at.
  struct Feature {
    std::size_t index = 0;
    float usual = 0;  // the value of most rows
    struct Range {
      float value;
      double log_least, log_most;
    };
    std::vector<Range> answered;  // the usual one is not among them
  };
  void prepare();

  KernelFeatureSet set_ = KernelFeatureSet::none;
  std::size_t amount_ = kNone;
  bool for_each_ = false;
  std::vector<MeasuredValue> values_;
  std::vector<Feature> features_;
};

}  // namespace stepcast

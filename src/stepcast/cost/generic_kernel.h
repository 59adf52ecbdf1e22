// Kernel times on unmeasured GPUs: the analytic time, corrected as on similar measured GPUs.
//
// On every measured GPU the time of a family of operations is
//     t = (floor + (analytic time without its floor) * exp(sum_j b_j * term_j(operation))) * exp(trees),
// with a few dimensionless terms of the same meaning on every device (generic_terms). A record has floor and
// b of each measured GPU, and trees trained on the remaining error of all GPUs together. For another GPU,
// floor and b are averaged by kriging over the similarity of devices: generation, kind of memory, vendor. A
// few measured points of the GPU refine them (calibrate/generic_fit). No answer comes nearer to the lower
// bound of the device than measured rows of its relatives came to theirs.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/on_demand.h"
#include "stepcast/base/result.h"
#include "stepcast/cost/analytic_model.h"
#include "stepcast/cost/families/gradient_trees.h"
#include "stepcast/cost/families/kernel_features.h"
#include "stepcast/operation/operation.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

inline constexpr std::string_view kGenericRecordKind = "generic_kernel_time";
inline constexpr int kGenericRecordVersion = 1;

// Coordinates of a device for kriging. A distance of 1 means that devices are hardly similar.
struct DevicePlace {
  double generation = 0;  // year of the architecture, in units of four years
  double memory = 0;      // stacked memory or memory chips on the board
  double vendor = 0;      // 0, or a distance for AMD
  friend bool operator==(const DevicePlace&, const DevicePlace&) = default;
};
[[nodiscard]] DevicePlace place_of(const Device& device);
// Similarity of two devices: 1 at the same place, falling to 0 with distance.
[[nodiscard]] double likeness(const DevicePlace& a, const DevicePlace& b);

// Name of the dtype class of records. fp16 and bf16 run on the same units and move the same bytes, so both
// are "half".
[[nodiscard]] std::string_view dtype_class(DType dtype);

// Like family_of(), but all memory-bound element-wise arithmetic is one family.
inline constexpr std::string_view kStreamingFamily = "streaming";
[[nodiscard]] std::string_view generic_family(const Operation& operation);

// Number of terms per operation, at most, including the constant.
inline constexpr std::size_t kMostGenericTerms = 9;
using GenericTerms = std::array<double, kMostGenericTerms>;
// Terms of an operation. The first is 1, unused ones are 0. Returns the number of terms in use.
std::size_t generic_terms(const Operation& operation, const AnalyticTime& analytic,
                          const DeviceFigures& figures, GenericTerms& terms);

// Inputs of the trees: the features of kernel_features.h with the analytic time as the reference.
using GenericFeatures = std::array<float, kMostKernelFeatures>;
void generic_features(const Operation& operation, const AnalyticTime& analytic, const DeviceFigures& figures,
                      GenericFeatures& features);
// Limit of the correction by trees, in ln.
inline constexpr double kMostTreeCorrection = 0.8;
// Sum of the trees, clamped to the limit above.
[[nodiscard]] double tree_correction(const GradientTrees& trees, const GenericFeatures& features);

// Parameters of one device: log_floor (us), b_0, b_1, ...
using GenericParameters = std::array<double, kMostGenericTerms + 1>;

// Band of ln(measured / predicted): p10 and p90.
struct GenericBand {
  double low = -0.5, high = 0.5;
};

// The key of a record: the part of its parameters that is read eagerly.
struct GenericRecordHeader {
  std::string family;  // as in generic_family()
  std::string dtype;   // dtype_class()
  Direction direction = Direction::forward;
  bool adapted = false;  // `devices` is one device, and the record is for that device

  [[nodiscard]] static Result<GenericRecordHeader> read(const JsonValue& parameters);
};

// A record: fitted parameters of the measured devices, and the trees.
struct GenericKernel : GenericRecordHeader {
  // Fit of one measured device.
  struct Measured {
    std::string device;
    DevicePlace place;
    GenericParameters parameters{};
    std::size_t n_rows = 0;    // measured rows behind the fit
    double nearest_bound = 1;  // largest ratio of lower bound to measured time among its rows
  };

  double log_usual_floor = 1;  // prior of the floor of the family, where few devices are known
  std::vector<Measured> devices;
  GenericBand unseen;  // residuals of devices that were left out of the fit in turn
  GenericBand inside;  // residuals of devices around their fitted parameters
  KernelFeatureSet features = KernelFeatureSet::none;  // inputs of the trees
  std::optional<GradientTrees> trees;                  // see `features`

  // Parameters for a device at `place`, averaged over the measured ones, without the device `left_out`.
  [[nodiscard]] GenericParameters parameters_at(const DevicePlace& place,
                                                std::optional<std::size_t> left_out = std::nullopt) const;
  // Covariance of the parameters of a device at `place`, row by row, kMostGenericTerms + 1 squared: the
  // spread between measured devices, reduced by the similarity to the nearest one.
  [[nodiscard]] std::vector<double> spread_at(const DevicePlace& place,
                                              std::optional<std::size_t> left_out = std::nullopt) const;

  // The largest nearest_bound of the devices nearest to `place`.
  [[nodiscard]] double nearest_bound_at(const DevicePlace& place) const;

  // Errors: a missing or invalid field, another version or analytic revision.
  [[nodiscard]] static Result<GenericKernel> read(const JsonValue& parameters);
  [[nodiscard]] JsonValue write() const;
};

// The formula above without trees, in us.
[[nodiscard]] double generic_time_us(const GenericParameters& parameters, const GenericTerms& terms,
                                     double analytic_us, double kernel_floor_us);

// The records of a platform, averaged for its device.
class GenericKernels {
 public:
  explicit GenericKernels(const Device& device);

  // Adds a record. Errors: another version or revision, or operations that are not known. The rest of the
  // record is read on first use.
  [[nodiscard]] Status add(const ModelRecord& record);
  [[nodiscard]] bool empty() const { return kernels_.empty(); }
  // None if no record applies. `model` must be of the same device.
  [[nodiscard]] std::optional<Estimate> estimate(const Operation& operation,
                                                 const AnalyticModel& model) const;
  // Name of the record that estimate() uses, with "(of other vendors)" where no measured device is of the
  // vendor of this device; empty: none.
  [[nodiscard]] std::string_view record_of(const Operation& operation) const;
  // "model generic/gemm/fp32/forward: the reason" of every unreadable record. Forces reading: of all records,
  // or of those that are not shipped.
  [[nodiscard]] std::vector<std::string> unreadable(bool also_shipped) const;

 private:
  // A record, averaged for one device.
  struct Prepared {
    GenericParameters parameters;
    GenericBand band;
    double nearest_bound;
    KernelFeatureSet features;
    std::optional<GradientTrees> trees;
    bool of_other_vendors;  // no device behind the record is of the vendor of this device
  };
  // A record and its lazily averaged form.
  struct Entry {
    std::string name, name_of_other_vendors;
    GenericRecordHeader header;
    detail::OnDemand<Prepared> kernel;
  };
  // The readable record for an operation, or null.
  [[nodiscard]] const Entry* find(const Operation& operation) const;

  DevicePlace place_;
  AnalyticModel without_power_limit_;  // of the same device
  std::vector<std::unique_ptr<Entry>> kernels_;
};

}  // namespace stepcast

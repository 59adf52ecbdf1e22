// Kernel times on GPUs that nobody measured: the analytic time, corrected as GPUs like it were.
//
// On every measured GPU the time of a family of operations is
//     t = (floor + (analytic time without its floor) * exp(sum_j b_j * term_j(operation))) * exp(trees),
// with few terms, dimensionless, that mean the same on every device (generic_terms). A record holds floor and
// b of each measured GPU, and trees that learned what is left of all of them together. For another GPU, floor
// and b are averaged by kriging over the likeness of devices: generation, kind of memory, vendor. Few
// measured points of a GPU move them further (calibrate/generic_fit). No answer comes nearer to the bound of the
// device than rows of its relatives came to theirs.
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

// Where a device stands among others; distances of one count as "hardly alike".
struct DevicePlace {
  double generation = 0;  // year of the architecture, in units of four years
  double memory = 0;      // stacked memory lies apart from what is soldered beside the chip
  double vendor = 0;
  friend bool operator==(const DevicePlace&, const DevicePlace&) = default;
};
[[nodiscard]] DevicePlace place_of(const Device& device);
// 1: the same place; falls to 0 with distance.
[[nodiscard]] double likeness(const DevicePlace& a, const DevicePlace& b);

// fp16 and bf16 run on the same units and move the same bytes: they share a class.
[[nodiscard]] std::string_view dtype_class(DType dtype);

// As family_of(), but all element-wise arithmetic that only streams is one.
inline constexpr std::string_view kStreamingFamily = "streaming";
[[nodiscard]] std::string_view generic_family(const Operation& operation);

inline constexpr std::size_t kMostGenericTerms = 9;
using GenericTerms = std::array<double, kMostGenericTerms>;
// The first is 1; unused ones are 0. Returns how many are used.
std::size_t generic_terms(const Operation& operation, const AnalyticTime& analytic,
                          const DeviceFigures& figures, GenericTerms& terms);

// What the trees of a record see: the features of kernel_features.h with the analytic time as reference.
using GenericFeatures = std::array<float, kMostKernelFeatures>;
void generic_features(const Operation& operation, const AnalyticTime& analytic, const DeviceFigures& figures,
                      GenericFeatures& features);
// Trees may not do more than this, in ln.
inline constexpr double kMostTreeCorrection = 0.8;
[[nodiscard]] double tree_correction(const GradientTrees& trees, const GenericFeatures& features);

// Floor (as its logarithm) and factors of one device: log_floor, b_0, b_1, ...
using GenericParameters = std::array<double, kMostGenericTerms + 1>;

// Residuals ln(measured / predicted): 10 % lie below, 10 % above.
struct GenericBand {
  double low = -0.5, high = 0.5;
};

// What a record answers for: the part of its parameters that is read before it is asked.
struct GenericRecordHeader {
  std::string family;  // as generic_family() says
  std::string dtype;   // dtype_class()
  Direction direction = Direction::forward;
  bool adapted = false;  // `devices` is one device, and the record is for it

  [[nodiscard]] static Result<GenericRecordHeader> read(const JsonValue& parameters);
};

struct GenericKernel : GenericRecordHeader {
  struct Measured {
    std::string device;
    DevicePlace place;
    GenericParameters parameters{};
    std::size_t n_rows = 0;
    double nearest_bound = 1;  // share of the bound of the device that its fastest rows reach
  };

  double log_usual_floor = 1;  // of the family, where devices say little
  std::vector<Measured> devices;
  GenericBand unseen;  // of devices that were left out in turn
  GenericBand inside;  // of devices around their own parameters
  KernelFeatureSet features = KernelFeatureSet::none;
  std::optional<GradientTrees> trees;  // see `features`

  // Averaged for a device at `place` from the measured ones, without `left_out`.
  [[nodiscard]] GenericParameters parameters_at(const DevicePlace& place,
                                                std::optional<std::size_t> left_out = std::nullopt) const;
  // How far the parameters of measured devices lie apart, and how much of that the likeness to them takes
  // away: the covariance (row by row, kMostGenericTerms + 1 squared) of what a device at `place` may have.
  [[nodiscard]] std::vector<double> spread_at(const DevicePlace& place,
                                              std::optional<std::size_t> left_out = std::nullopt) const;

  // The largest share of its bound that a relative reached: of the devices nearest to `place`.
  [[nodiscard]] double nearest_bound_at(const DevicePlace& place) const;

  [[nodiscard]] static Result<GenericKernel> read(const JsonValue& parameters);
  [[nodiscard]] JsonValue write() const;
};

[[nodiscard]] double generic_time_us(const GenericParameters& parameters, const GenericTerms& terms,
                                     double analytic_us, double kernel_floor_us);

// The records of a platform, averaged for its device.
class GenericKernels {
 public:
  explicit GenericKernels(const Device& device);

  // Errors: of another version, for operations that are not known. The rest of a record is read when it is first
  // asked for.
  [[nodiscard]] Status add(const ModelRecord& record);
  [[nodiscard]] bool empty() const { return kernels_.empty(); }
  // Nothing if no record is for such operations. `model` is of the same device.
  [[nodiscard]] std::optional<Estimate> estimate(const Operation& operation,
                                                 const AnalyticModel& model) const;
  // Name of the record that estimate() used, with "(of other vendors)" where no device of this one's vendor was measured;
  // empty: none.
  [[nodiscard]] std::string_view record_of(const Operation& operation) const;
  // "model generic/gemm/fp32/forward: the reason" of all that cannot be read. Reads them all, or all but those that
  // ship.
  [[nodiscard]] std::vector<std::string> unreadable(bool also_shipped) const;

 private:
  // What is left of a record for one device.
  struct Prepared {
    GenericParameters parameters;
    GenericBand band;
    double nearest_bound;
    KernelFeatureSet features;
    std::optional<GradientTrees> trees;
    bool of_other_vendors;  // none of the devices behind it is of the vendor of this one
  };
  struct Entry {
    std::string name, name_of_other_vendors;
    GenericRecordHeader header;
    detail::OnDemand<Prepared> kernel;
  };
  // One that can be read.
  [[nodiscard]] const Entry* find(const Operation& operation) const;

  DevicePlace place_;
  AnalyticModel without_power_limit_;  // of the same device
  std::vector<std::unique_ptr<Entry>> kernels_;
};

}  // namespace stepcast

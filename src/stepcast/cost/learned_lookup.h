// Embedding lookups learned from a user's measurements of kernels over many tables, by the 21 features of the
// published model (Lin et al., "Towards Universal Performance Modeling for Machine Learning Training on
// Multi-GPU Platforms"): ln of samples, rows, lookups per sample and columns, and the 17 reuse factors of
// every table.
//
// As in the paper, one model reads the features of each table and its outputs are summed over tables. Here
// the summands are amounts of work in microseconds: a Gaussian process corrects the logarithm of the analytic
// time of a table. So few measurements suffice, and times beyond the measured sizes grow with the bytes.
//
//   forward   start + (M^p + G^p)^(1/p)   M: cache misses, indices and outputs of all tables;
//                                         G: all rows at the cache rate;
//                                         each is the analytic time * exp(process)
//   backward  start + B                   B: sort, gradients and updates of all tables, corrected likewise
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/cost/access_pattern.h"
#include "stepcast/cost/embedding_lookup.h"
#include "stepcast/cost/families/gaussian_process.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/operation/operation.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

inline constexpr std::size_t kLookupFeatures = 4 + kReuseBins;
using LookupFeatures = std::array<float, kLookupFeatures>;

// Features of one table of one kernel; `pooling` 0 counts as 0.001.
[[nodiscard]] LookupFeatures lookup_features(double bags, double rows, double pooling, double dim,
                                             const ReuseHistogram& of_rows);

// Revision of the analytic model and of the correction; records of another revision are rejected.
inline constexpr int kLookupModelRevision = 2;

// The learned model of one direction, for tables of one type.
class LearnedLookup {
 public:
  static constexpr std::string_view kRecordKind = "embedding_lookup";

  struct Parameters {
    DType dtype = DType::fp32;
    Direction direction = Direction::forward;
    LookupFeatures least{}, most{};            // range of the training data; features are clamped to it
    double start_us = 1;                       // of the whole kernel
    double sharpness = 4;                      // p
    double log_p10 = -0.1, log_p90 = 0.1;      // ln(measured / predicted) of held-out kernels
    std::vector<GaussianProcess> corrections;  // forward: of M and G; backward: of B
    [[nodiscard]] static std::size_t works_of(Direction direction) {
      return direction == Direction::forward ? 2 : 1;
    }
  };
  // Errors: a wrong number of corrections for the direction, numbers that are not finite or not above 0.
  [[nodiscard]] static Result<LearnedLookup> make(Parameters parameters);
  // Keys: revision, dtype, direction, least[21], most[21], start_us, sharpness, log_p10, log_p90,
  // corrections[].
  [[nodiscard]] static Result<LearnedLookup> read(const JsonValue& value);
  [[nodiscard]] JsonValue write() const;
  [[nodiscard]] static std::string record_name(DType dtype, Direction direction);

  // Replaces the analytic times of one table in `cost` by corrected ones.
  void correct(const LookupFeatures& features, LookupCost& cost) const;
  // Time in us of a kernel; `tables` is the sum over its tables, each corrected.
  [[nodiscard]] double kernel_us(const LookupCost& tables) const;

  [[nodiscard]] const Parameters& parameters() const { return parameters_; }

 private:
  Parameters parameters_;
};

// The models for tables of one type; either direction may be missing.
struct LearnedLookups {
  std::optional<LearnedLookup> forward, backward;
  [[nodiscard]] bool empty() const { return !forward && !backward; }
  // Whether they apply to a table: in GPU memory, unweighted, with the same element size.
  [[nodiscard]] bool holds(const TableLookup& table) const;
};
// The learned models of a device from the records of its platform. Errors: an unreadable record, by name.
[[nodiscard]] Result<LearnedLookups> learned_lookups(std::span<const ModelRecord> records,
                                                     const Device& device, DType dtype);

}  // namespace stepcast

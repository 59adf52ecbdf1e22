// Embedding lookups as learned from a user's measurements of kernels over many tables, by the 21 features of the
// published model (Lin et al., "Towards Universal Performance Modeling for Machine Learning Training on Multi-GPU
// Platforms"): ln of samples, rows, lookups per sample and columns, and the 17 reuse factors of every table.
//
// As there, one model reads the features of every table, and what it says of them is added up. Here the sums are amounts
// of work in microseconds: a Gaussian process corrects the logarithm of what the analytic model says of a table, so that
// few measurements do, and what lies beyond them grows as bytes do.
//
//   forward   start + (M^p + G^p)^(1/p)   M: rows that the cache lacks, indices and outputs, of all tables; G: all rows at
//                                         the rate of the cache; each exp(process) times as much as analytic
//   backward  start + B                   B: sort, gradients and updates of all tables, likewise
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

// Of one table of one kernel; `pooling` 0 counts as 0.001.
[[nodiscard]] LookupFeatures lookup_features(double bags, double rows, double pooling, double dim,
                                             const ReuseHistogram& of_rows);

// What the analytic model said when it was learned, and what corrects it; records of another are not read.
inline constexpr int kLookupModelRevision = 2;

// One direction, for tables of one type.
class LearnedLookup {
 public:
  static constexpr std::string_view kRecordKind = "embedding_lookup";

  struct Parameters {
    DType dtype = DType::fp32;
    Direction direction = Direction::forward;
    LookupFeatures least{}, most{};            // seen; features beyond are held there
    double start_us = 1;                       // of the whole kernel
    double sharpness = 4;                      // p
    double log_p10 = -0.1, log_p90 = 0.1;      // ln(measured / predicted) of kernels that were held out
    std::vector<GaussianProcess> corrections;  // forward: of M and G; backward: of B
    [[nodiscard]] static std::size_t works_of(Direction direction) {
      return direction == Direction::forward ? 2 : 1;
    }
  };
  // Errors: another number of corrections than the direction has, numbers that are not finite or not above 0.
  [[nodiscard]] static Result<LearnedLookup> make(Parameters parameters);
  // Keys: revision, dtype, direction, least[21], most[21], start_us, sharpness, log_p10, log_p90, corrections[].
  [[nodiscard]] static Result<LearnedLookup> read(const JsonValue& value);
  [[nodiscard]] JsonValue write() const;
  [[nodiscard]] static std::string record_name(DType dtype, Direction direction);

  // Corrects what the analytic model says of one table.
  void correct(const LookupFeatures& features, LookupCost& cost) const;
  // Of the sum over the tables of a kernel, each corrected.
  [[nodiscard]] double kernel_us(const LookupCost& tables) const;

  [[nodiscard]] const Parameters& parameters() const { return parameters_; }

 private:
  Parameters parameters_;
};

// Of tables of one type.
struct LearnedLookups {
  std::optional<LearnedLookup> forward, backward;
  [[nodiscard]] bool empty() const { return !forward && !backward; }
  // Whether they were learned for tables like this one.
  [[nodiscard]] bool holds(const TableLookup& table) const;
};
// Those of a device among the records of its platform. Errors: a record that cannot be read, by its name.
[[nodiscard]] Result<LearnedLookups> learned_lookups(std::span<const ModelRecord> records,
                                                     const Device& device, DType dtype);

}  // namespace stepcast

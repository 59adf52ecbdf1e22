// Fits the curve of one collective on one group of ranks to its measurements.
//
// Two layers. First the form StartupForm is fitted by robust regularised least squares on ln(time). Then its residuals are
// smoothed over the logarithm of the size by a Gaussian process with a Matern-3/2 kernel, because protocol changes are kinks
// that no short formula describes; if several dtypes were measured, also for each dtype. The p10-p90 band comes from the
// errors of each octave when form and smoother are fitted without it.
//
//   STEPCAST_ASSIGN(const CollectiveFit fit, fit_collective(measurements));
//   Estimate t = fit.curve(DType::fp16).at(Bytes{1 << 20});
//   platform.set(fit.records()[0]);
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/cost/collective_curve.h"
#include "stepcast/platform/platform.h"

#include "calibrate/collective_measurements.h"

namespace stepcast {

struct CollectiveFitOptions {
  // Fewer distinct sizes than this cannot be fitted.
  std::size_t min_sizes = 4;
  // A sample further than this from the curve, in ln(time), is reported as an outlier. The robust fit has already given it
  // little weight.
  double outlier_ln = 0.7;
};

// Measured and fitted time, one entry for each size.
struct FitPoint {
  double message_bytes = 0, measured_us = 0, fitted_us = 0;
};

class CollectiveFit {
 public:
  StartupForm form;                           // ours
  SigmoidForm published;                      // the published form, fitted by the published procedure
  double measured_from = 0, measured_to = 0;  // log2 bytes
  std::uint64_t n_samples = 0, n_sizes = 0, n_outliers = 0;
  // Over the samples: mean and 90th percentile of |fitted - measured| / measured, in percent.
  double mape_pct = 0, p90_ape_pct = 0, form_mape_pct = 0;
  std::vector<FitPoint> points;  // medians by size

  // The curve for a dtype. For an unmeasured dtype, the curve for all dtypes.
  [[nodiscard]] const TimeCurve& curve(DType dtype = DType::unknown) const;
  // Records for a platform file: one for all dtypes, and one for each dtype that differs by more than 3 %.
  // Knots are values of the smooth curve, never measurements.
  [[nodiscard]] std::vector<CollectiveCurve> records(const Provenance& provenance) const;

 private:
  friend Result<CollectiveFit> fit_collective(const CollectiveMeasurements&, const CollectiveFitOptions&);
  struct Fitted {
    DType dtype;
    std::vector<double> knots_log2, knots_ln_us;
    TimeCurve curve;
  };
  std::vector<Fitted> fitted_;  // [0] for all dtypes
  std::vector<ResidualQuantiles> residuals_;
  CollectiveOp collective_ = CollectiveOp::unknown;
  std::uint32_t n_nodes_ = 1, gpus_per_node_ = 1, n_ranks_ = 1;
};

[[nodiscard]] Result<CollectiveFit> fit_collective(const CollectiveMeasurements& measurements,
                                                   const CollectiveFitOptions& options = {});

// The command that measures this group, for example "all_reduce_perf -b 8 -e 1G -f 2 -g 8".
[[nodiscard]] std::string measuring_command(CollectiveOp op, std::uint32_t n_nodes,
                                            std::uint32_t gpus_per_node);

// Fits the two closed forms of a curve (cost/collective_curve.h) to samples.

// Fits by the published procedure (docs/collectives.md). Needs two distinct sizes.
[[nodiscard]] SigmoidForm fit_published_form(std::span<const CollectiveSample> samples, double factor);

// Fits our form by robust regularised least squares on ln(time).
[[nodiscard]] StartupForm fit_startup_form(std::span<const CollectiveSample> samples, double factor);

}  // namespace stepcast

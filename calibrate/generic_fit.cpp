#include "calibrate/generic_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/generic_kernel.h"

#include "calibrate/detail/minimization.h"
#include "calibrate/detail/tree_training.h"

namespace stepcast {
namespace {

constexpr std::size_t kParameters = kMostGenericTerms + 1;
constexpr double kPriorPrecision = 8;     // of each parameter around the analytic model
constexpr double kRobustResidual = 0.05;  // ln; larger residuals count linearly
constexpr double kFitVariance = 0.01;     // of ln(measured / model) inside of one device; assumed
// Variance for adapting to few rows: with 20 points of a GPU better than 0.01 and 0.02.
constexpr double kAdaptVariance = 0.005;
// Number of independent rows per device, because errors of neighbouring shapes are correlated. Terms that hardly vary in the
// rows of a device then stay near 0.
constexpr double kIndependentRows = 100;
constexpr double kLargestStep = 0.7;
constexpr double kAdaptedBandWidening = 1.15;  // few points leave the parameters uncertain; assumed
constexpr std::size_t kFewestRowsOfDevice = 30, kMostRowsOfDevice = 3000;
constexpr double kLeastBand = 0.03;
constexpr double kUnseenBandWidening =
    1.25;  // from the coverage when a GPU of the neusight_train files is left out
constexpr double kLeastBandOfFewDevices = 0.2;  // ln; families that one or two GPUs measured; assumed
constexpr double kMostUsualLogFloor = 3.0;      // 20 us: where the fit starts if all rows are long

// Few, slowly learned trees: what they learn on some GPUs must be valid on others.
constexpr detail::BoosterOptions kTreeOptions{.rounds = 120,
                                              .depth = 4,
                                              .learning_rate = 0.08,
                                              .row_sample = 0.7,
                                              .column_sample = 0.6,
                                              .min_child_weight = 40,
                                              .lambda = 5};
constexpr int kTreePasses = 2;
constexpr double kLargestTarget = 1;
constexpr double kLeafScale = 1e-3;

// One row as input of the fit.
struct Point {
  GenericTerms terms{};
  double analytic_us = 0, kernel_floor_us = 0;  // time, and the floor included in it
  double log_us = 0;                            // measured
  double share_of_bound = 0;                    // bound over measured
  double log_trees = 0;                         // prediction of the trees
  KernelFeatureSet set = KernelFeatureSet::none;
  GenericFeatures features{};  // of operations on matrix units
};

std::optional<Point> point_of(const KernelMeasurement& row, const AnalyticModel& model) {
  const double us = row.time.value();
  if (!(us > 0) || !std::isfinite(us)) return std::nullopt;
  const AnalyticTime analytic = model.answer(row.operation);
  if (us < analytic.lower_bound.value()) return std::nullopt;
  Point p;
  generic_terms(row.operation, analytic, model.figures(), p.terms);
  p.analytic_us = analytic.time.value();
  p.kernel_floor_us = model.figures().kernel_floor_us;
  p.log_us = std::log(us);
  p.share_of_bound = analytic.lower_bound.value() / us;
  if (analytic.work.matrix) {
    p.set = kernel_feature_set_of(row.operation);
    generic_features(row.operation, analytic, model.figures(), p.features);
  }
  return p;
}

double log_model(const GenericParameters& parameters, const Point& p) {
  return p.log_trees + std::log(generic_time_us(parameters, p.terms, p.analytic_us, p.kernel_floor_us));
}

// Maximum a posteriori parameters: Gauss-Newton on ln(measured / model) with absolute errors beyond the robust scale, with a
// prior around `centre` with `precision` (row by row).
GenericParameters fit_parameters(std::span<const Point> points, const GenericParameters& centre,
                                 std::span<const double> precision, double variance, int iterations) {
  GenericParameters theta = centre;
  std::vector<double> h(kParameters * kParameters), g(kParameters);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    std::copy(precision.begin(), precision.end(), h.begin());
    for (std::size_t a = 0; a < kParameters; ++a) {
      g[a] = 0;
      for (std::size_t b = 0; b < kParameters; ++b)
        g[a] -= precision[a * kParameters + b] * (theta[b] - centre[b]);
    }
    for (const Point& p : points) {
      const double log_t = log_model(theta, p);
      const double floor_share = std::exp(theta[0] - (log_t - p.log_trees));
      const double r = p.log_us - log_t;
      const double weight = kRobustResidual / std::max(std::abs(r), kRobustResidual) / variance;
      GenericParameters slope{};
      slope[0] = floor_share;
      for (std::size_t j = 0; j < kMostGenericTerms; ++j) slope[j + 1] = (1 - floor_share) * p.terms[j];
      for (std::size_t a = 0; a < kParameters; ++a) {
        g[a] += weight * slope[a] * r;
        for (std::size_t b = 0; b <= a; ++b) h[a * kParameters + b] += weight * slope[a] * slope[b];
      }
    }
    if (!detail::cholesky(h, kParameters)) break;
    detail::cholesky_solve(h, kParameters, g);
    double largest = 0;
    for (std::size_t a = 0; a < kParameters; ++a) {
      const double step = std::clamp(g[a], -kLargestStep, kLargestStep);
      theta[a] += step;
      largest = std::max(largest, std::abs(step));
    }
    if (largest < 1e-5) break;
  }
  return theta;
}

std::vector<double> diagonal(double value) {
  std::vector<double> out(kParameters * kParameters, 0);
  for (std::size_t a = 0; a < kParameters; ++a) out[a * kParameters + a] = value;
  return out;
}

// Inverse of a symmetric positive definite matrix.
std::vector<double> inverse(std::vector<double> matrix) {
  if (!detail::cholesky(matrix, kParameters)) return diagonal(kPriorPrecision);
  return detail::cholesky_inverse(matrix, kParameters);
}

// A residual and its weight; all devices have equal total weight.
struct Residual {
  double log_ratio, weight;
};
GenericBand band_of(std::vector<Residual> residuals) {
  std::ranges::sort(residuals, {}, &Residual::log_ratio);
  double total = 0;
  for (const Residual& r : residuals) total += r.weight;
  const auto quantile = [&](double share) {
    double below = 0;
    for (const Residual& r : residuals) {
      below += r.weight;
      if (below >= share * total) return r.log_ratio;
    }
    return residuals.empty() ? 0.0 : residuals.back().log_ratio;
  };
  return {std::min(quantile(0.1), -kLeastBand), std::max(quantile(0.9), kLeastBand)};
}

// Trees on the residuals of all devices together.
Result<GradientTrees> learn_trees(const std::map<std::string, std::vector<Point>>& group,
                                  const GenericKernel& kernel, std::size_t n_features) {
  std::vector<float> rows, targets, weights;
  double total = 0;
  for (const auto& [device, points] : group) total += static_cast<double>(points.size());
  std::size_t i = 0;
  for (const auto& [device, points] : group) {
    const double weight = total / static_cast<double>(group.size()) / static_cast<double>(points.size());
    for (const Point& p : points) {
      rows.insert(rows.end(), p.features.begin(),
                  p.features.begin() + static_cast<std::ptrdiff_t>(n_features));
      const double residual = p.log_us + p.log_trees - log_model(kernel.devices[i].parameters, p);
      targets.push_back(static_cast<float>(std::clamp(residual, -kLargestTarget, kLargestTarget)));
      weights.push_back(static_cast<float>(weight));
    }
    ++i;
  }
  STEPCAST_ASSIGN(EncodedTrees trees, detail::train_trees(rows, n_features, targets, weights, kTreeOptions));
  return GradientTrees::decode(detail::shortened(std::move(trees), rows, n_features, kLeafScale), n_features);
}

double rounded_coefficient(double value) { return std::round(value * 1e5) / 1e5; }

using Group = std::map<std::string, std::vector<Point>>;  // by device

std::string group_name(std::string_view family, std::string_view dtype, Direction direction) {
  return fmt::format("generic/{}/{}/{}", family, dtype, to_string(direction));
}

// Start value for fits of floors: devices with only long rows do not determine their floor.
double usual_floor(const Group& group) {
  double least = kMostUsualLogFloor;
  for (const auto& [device, points] : group) {
    std::vector<double> times;
    for (const Point& p : points) times.push_back(p.log_us);
    const auto low = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 50);
    std::nth_element(times.begin(), low, times.end());
    // Even the shortest rows do some work.
    least = std::min(least, *low - std::log(2.0));
  }
  return std::max(0.0, least);
}

// The bound of the fastest hundredth, because single rows may be wrong.
double nearest_bound(const std::vector<Point>& points) {
  std::vector<double> shares;
  for (const Point& p : points) shares.push_back(p.share_of_bound);
  const auto at = shares.begin() + static_cast<std::ptrdiff_t>((shares.size() - 1) * 99 / 100);
  std::nth_element(shares.begin(), at, shares.end());
  return std::clamp(rounded_coefficient(*at), 1e-3, 1.0);
}

using Places = std::map<std::string, DevicePlace>;

// A record during its fit.
struct Family {
  GenericKernel kernel;
  Group points;
};

// Fits the parameters of every device, then trees on the residuals of all devices, then the parameters again.
Status fit_family(Family& family, const Places& places) {
  GenericKernel& kernel = family.kernel;
  kernel.log_usual_floor = rounded_coefficient(usual_floor(family.points));
  GenericParameters centre{};
  centre[0] = kernel.log_usual_floor;
  for (const auto& [device, points] : family.points)
    kernel.devices.push_back({device, places.at(device), {}, points.size(), nearest_bound(points)});
  const KernelFeatureSet set = family.points.begin()->second.front().set;
  const int passes = set != KernelFeatureSet::none && detail::why_no_trees().empty() ? kTreePasses : 0;
  for (int pass = 0;; ++pass) {
    std::size_t i = 0;
    for (const auto& [device, points] : family.points) {
      GenericParameters& parameters = kernel.devices[i++].parameters;
      const double repeats = std::max(1.0, static_cast<double>(points.size()) / kIndependentRows);
      parameters = fit_parameters(points, centre, diagonal(kPriorPrecision), kFitVariance * repeats, 40);
      for (double& p : parameters) p = rounded_coefficient(p);
    }
    if (pass == passes) break;
    kernel.features = set;
    STEPCAST_ASSIGN(kernel.trees, learn_trees(family.points, kernel, kernel_features_of(set).size()));
    for (auto& [device, points] : family.points)
      for (Point& p : points) p.log_trees = tree_correction(*kernel.trees, p.features);
  }
  double floors = 0;
  for (const GenericKernel::Measured& m : kernel.devices) floors += m.parameters[0];
  kernel.log_usual_floor = rounded_coefficient(floors / static_cast<double>(kernel.devices.size()));
  return Ok{};
}

// Bandwidth does not depend on the type. GPUs that were measured only in half types lend their factors. They do not lend
// their floor, which depends on the host and the method of measurement.
void lend_devices(const GenericKernel& lender, GenericKernel& borrower) {
  for (GenericKernel::Measured m : lender.devices) {
    const bool known = std::ranges::any_of(
        borrower.devices, [&](const GenericKernel::Measured& o) { return o.device == m.device; });
    if (known) continue;
    m.parameters[0] = borrower.log_usual_floor;
    borrower.devices.push_back(std::move(m));
  }
}

// The family without any measurement of `device`: its rows are removed from parameters, floors and trees. `lender`: as in
// lend_devices(), or null.
Result<Family> without(const Family& family, const std::string& device, const Places& places,
                       const GenericKernel* lender) {
  Family others;
  others.kernel.family = family.kernel.family;
  others.kernel.dtype = family.kernel.dtype;
  others.kernel.direction = family.kernel.direction;
  // Without other devices, the start value of this device's fit.
  others.kernel.log_usual_floor = rounded_coefficient(usual_floor(family.points));
  others.points = family.points;
  others.points.erase(device);
  for (auto& [unused, points] : others.points)
    for (Point& p : points) p.log_trees = 0;
  if (!others.points.empty()) STEPCAST_TRY(fit_family(others, places));
  if (lender != nullptr) {
    lend_devices(*lender, others.kernel);
    std::erase_if(others.kernel.devices,
                  [&](const GenericKernel::Measured& m) { return m.device == device; });
  }
  return others;
}

// Leaves out every device in turn. Returns the mean absolute error in percent, with equal weight for all devices.
Result<double> measure_bands(Family& family, const Places& places, const GenericKernel* lender) {
  GenericKernel& kernel = family.kernel;
  std::vector<Residual> unseen, inside;
  double mape = 0;
  for (const auto& [device, points] : family.points) {
    STEPCAST_ASSIGN(const Family others, without(family, device, places, lender));
    const GenericParameters guess = others.kernel.parameters_at(places.at(device));
    std::vector<Point> held_out = points;
    for (Point& p : held_out)
      p.log_trees = others.kernel.trees ? tree_correction(*others.kernel.trees, p.features) : 0;
    // Treated as a device to which the trees of the others are adapted.
    GenericParameters centre{};
    centre[0] = kernel.log_usual_floor;
    const double repeats = std::max(1.0, static_cast<double>(held_out.size()) / kIndependentRows);
    const GenericParameters own =
        fit_parameters(held_out, centre, diagonal(kPriorPrecision), kFitVariance * repeats, 40);
    const double weight = 1 / static_cast<double>(held_out.size());
    for (const Point& p : held_out) {
      const double r = p.log_us - log_model(guess, p);
      unseen.push_back({r, weight});
      mape += 100 * std::abs(std::exp(-r) - 1) * weight / static_cast<double>(family.points.size());
      inside.push_back({p.log_us - log_model(own, p), weight});
    }
  }
  kernel.unseen = band_of(std::move(unseen));
  kernel.inside = band_of(std::move(inside));
  // The measured GPUs are not a representative sample of all GPUs.
  kernel.unseen.low *= kUnseenBandWidening;
  kernel.unseen.high *= kUnseenBandWidening;
  if (kernel.devices.size() < 3) {
    kernel.unseen.low = std::min(kernel.unseen.low, -kLeastBandOfFewDevices);
    kernel.unseen.high = std::max(kernel.unseen.high, kLeastBandOfFewDevices);
  }
  for (GenericBand* band : {&kernel.unseen, &kernel.inside}) {
    band->low = rounded_coefficient(band->low);
    band->high = rounded_coefficient(band->high);
  }
  return mape;
}

// Keeps evenly spread points: more add no information on a handful of parameters.
void thin_out(std::vector<Point>& points) {
  if (points.size() <= kMostRowsOfDevice) return;
  std::vector<Point> kept;
  for (std::size_t i = 0; i < kMostRowsOfDevice; ++i)
    kept.push_back(points[i * points.size() / kMostRowsOfDevice]);
  points = std::move(kept);
}

}  // namespace

bool has_generic_model(std::span<const ModelRecord> records, const Operation& operation) {
  const std::string name =
      group_name(generic_family(operation), dtype_class(operation.dtype), operation.direction);
  return std::ranges::any_of(
      records, [&](const ModelRecord& r) { return r.kind == kGenericRecordKind && r.name == name; });
}

Result<GenericFit> fit_generic_models(std::span<const MeasuredDevice> devices) {
  std::map<std::string, Family> families;
  Places places;
  for (const MeasuredDevice& measured : devices) {
    const AnalyticModel model{measured.device};
    places[measured.device.name] = place_of(measured.device);
    for (const KernelMeasurement* row : measured.rows) {
      const auto point = point_of(*row, model);
      if (!point) continue;
      const Operation& op = row->operation;
      // Lookup times depend on how often rows repeat, which files of kernels do not say.
      if (std::holds_alternative<LookupShape>(op.shape)) continue;
      Family& family = families[group_name(generic_family(op), dtype_class(op.dtype), op.direction)];
      family.kernel.family = generic_family(op);
      family.kernel.dtype = dtype_class(op.dtype);
      family.kernel.direction = op.direction;
      family.points[measured.device.name].push_back(*point);
    }
  }
  for (auto& [name, family] : families) {
    std::erase_if(family.points, [](const auto& entry) { return entry.second.size() < kFewestRowsOfDevice; });
    for (auto& [device, points] : family.points) thin_out(points);
    if (!family.points.empty()) STEPCAST_TRY(fit_family(family, places));
  }
  const auto lender = families.find(group_name(kStreamingFamily, "half", Direction::forward));
  const auto borrower = families.find(group_name(kStreamingFamily, "fp32", Direction::forward));
  const bool lends = lender != families.end() && borrower != families.end();
  if (lends) lend_devices(lender->second.kernel, borrower->second.kernel);

  GenericFit out;
  for (auto& [name, family] : families) {
    if (family.points.empty()) continue;
    const GenericKernel* lent = lends && &family == &borrower->second ? &lender->second.kernel : nullptr;
    GenericFitNote note{.record = name};
    for (const auto& [device, points] : family.points) {
      note.devices.push_back(device);
      note.n_rows += points.size();
    }
    STEPCAST_ASSIGN(note.unseen_mape_percent, measure_bands(family, places, lent));
    ModelRecord record{.name = name, .kind = std::string{kGenericRecordKind}};
    record.parameters = family.kernel.write();
    record.provenance.source = FigureSource::fitted;
    record.provenance.n_rows = note.n_rows;
    record.provenance.error["unseen_device_mape_pct"] = std::round(note.unseen_mape_percent * 10) / 10;
    out.records.push_back(std::move(record));
    out.notes.push_back(std::move(note));
  }
  return out;
}

Result<std::vector<ModelRecord>> adapt_generic_models(std::span<const ModelRecord> generic,
                                                      std::span<const KernelMeasurement* const> rows,
                                                      const Device& device) {
  const AnalyticModel model{device};
  const DevicePlace place = place_of(device);
  std::map<std::string, std::vector<Point>> points;
  for (const KernelMeasurement* row : rows) {
    const Operation& op = row->operation;
    if (const auto point = point_of(*row, model))
      points[group_name(generic_family(op), dtype_class(op.dtype), op.direction)].push_back(*point);
  }
  std::vector<ModelRecord> out;
  for (const ModelRecord& record : generic) {
    if (record.kind != kGenericRecordKind) continue;
    auto read = GenericKernel::read(record.parameters);
    if (!read) return Error{fmt::format("model {}: {}", record.name, read.error().message())};
    GenericKernel kernel = std::move(read).value();
    const auto found = points.find(group_name(kernel.family, kernel.dtype, kernel.direction));
    if (kernel.adapted || found == points.end()) {
      out.push_back(record);
      continue;
    }
    std::vector<Point>& few = found->second;
    if (kernel.trees)
      for (Point& p : few) p.log_trees = tree_correction(*kernel.trees, p.features);
    GenericKernel::Measured m{.device = device.name,
                              .place = place,
                              .n_rows = few.size(),
                              .nearest_bound = kernel.nearest_bound_at(place)};
    m.parameters = fit_parameters(few, kernel.parameters_at(place), inverse(kernel.spread_at(place)),
                                  kAdaptVariance, 40);
    for (double& p : m.parameters) p = rounded_coefficient(p);
    kernel.devices = {std::move(m)};
    kernel.adapted = true;
    kernel.inside.low *= kAdaptedBandWidening;
    kernel.inside.high *= kAdaptedBandWidening;
    ModelRecord adapted = record;
    adapted.device = device.name;
    adapted.parameters = kernel.write();
    adapted.provenance.n_rows = few.size();
    adapted.provenance.error.clear();
    out.push_back(std::move(adapted));
  }
  return out;
}

}  // namespace stepcast

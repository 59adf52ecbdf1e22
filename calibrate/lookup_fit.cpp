#include "calibrate/lookup_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/base/stop.h"
#include "stepcast/cost/families/record_numbers.h"
#include "stepcast/operation/optimizer_rule.h"

#include "calibrate/detail/minimization.h"

namespace stepcast {
namespace {

// Limits of the start-up time in us and of the sharpness, in addition to the evidence of the points.
constexpr double kLeastStartUs = 0.5, kMostStartUs = 2000, kMostSharpness = 30;
constexpr std::size_t kFolds = 5;

TableLookup lookup_of(const LookupMeasurement& m, const LookupMeasurement::Table& t,
                      const AccessPattern& pattern) {
  const TableState state = rule_of(m.optimizer).table_state();
  return {.rows = t.rows,
          .dim = t.dim,
          .bags = m.bags,
          .pooling = t.pooling,
          .weight_bytes = element_size(m.dtype).value(),
          .state_bytes_per_row = state.bytes_per_row,
          .state_bytes_per_element = state.bytes_per_element,
          .one_to_one = t.pooling == 1,
          .pattern = &pattern};
}

AccessPattern pattern_of(const LookupMeasurement& m, const LookupMeasurement::Table& t) {
  return AccessPattern::from_reuse(t.reuse, m.bags * t.pooling, t.rows);
}

// Most tables that define the learned function, and its reach in deviations of a feature.
constexpr std::size_t kMostPoints = 160;
constexpr double kReach = 8;
// Variances relative to the learned function: the residual of a kernel, and the jitter that separates close points.
constexpr double kNoiseOfKernel = 1e-3, kJitter = 1e-5;
constexpr int kMostSteps = 40, kMostTries = 8;
constexpr double kEnough = 1e-3;     // stop after a step that reduces the loss by less
constexpr double kUnbounded = 1e-6;  // curvature added for the two numbers, which have no prior
constexpr double kMostCorrection = 3;

// A kernel of the training set: the range of its tables among the tables of all kernels, and ln of its time.
struct Example {
  std::size_t first = 0, n_tables = 0;
  double ln_time = 0;
};

// Least squares of ln time by Levenberg-Marquardt. The learned work of a table is the dot product of `amounts_` and
// `values_`. `values_` is L^-1 times the covariances of the table with the points, with L L^T the covariance among the
// points. So the squared amounts are the penalty of a Gaussian process.
class Training {
 public:
  Training(std::span<const LookupMeasurement> kernels, const Device& device, std::uint64_t seed)
      : n_works_(LearnedLookup::Parameters::works_of(kernels.front().direction)) {
    const LookupModel analytic{device};
    const bool forward = kernels.front().direction == Direction::forward;
    double least_us = kernels.front().time_us;
    for (const LookupMeasurement& m : kernels) {
      examples_.push_back({features_.size(), m.tables.size(), std::log(m.time_us)});
      least_us = std::min(least_us, m.time_us);
      for (const LookupMeasurement::Table& t : m.tables) {
        const LookupCost cost = analytic.cost(lookup_of(m, t, pattern_of(m, t)));
        features_.push_back(lookup_features(m.bags, t.rows, t.pooling, t.dim, t.reuse));
        ln_works_.push_back({ln(forward ? cost.missed_us : cost.backward_us), ln(cost.gather_us)});
      }
    }
    scale_features();
    draw_points(seed);
    compare_with_points();
    // The start-up is at most the time of the shortest kernel.
    const double start =
        forward ? analytic.forward_us({.forward_us = 1e-9}) : analytic.backward_us({.lookups = 1});
    amounts_.assign(n_works_ * n_points_ + 2, 0);
    amounts_[amounts_.size() - 2] =
        std::log(std::clamp(std::min(start, 0.8 * least_us), kLeastStartUs, kMostStartUs));
    amounts_.back() = std::log(3.0);
  }

  void run() {
    double damping = 1e-3, best = loss(nullptr);
    for (int step = 0; step < kMostSteps && !is_stop_requested(); ++step) {
      Slopes slopes{std::vector<double>(amounts_.size() * amounts_.size()),
                    std::vector<double>(amounts_.size())};
      const double before = loss(&slopes);
      for (int attempt = 0; attempt < kMostTries && best >= before; ++attempt) {
        const std::vector<double> old = amounts_;
        if (move(slopes, damping)) best = loss(nullptr);
        damping = best < before ? damping / 5 : damping * 5;
        if (best < before) break;
        amounts_ = old;
        best = before;
      }
      if (best > before * (1 - kEnough)) return;
    }
  }

  Result<LearnedLookup::Parameters> finish() && {
    LearnedLookup::Parameters p;
    p.least = p.most = features_.front();
    for (const LookupFeatures& features : features_) {
      for (std::size_t f = 0; f < kLookupFeatures; ++f) {
        p.least[f] = std::min(p.least[f], features[f]);
        p.most[f] = std::max(p.most[f], features[f]);
      }
    }
    p.start_us = start_us();
    p.sharpness = sharpness();
    for (std::size_t k = 0; k < n_works_; ++k) {
      // The weights of the points are L^-T times the amounts.
      std::vector<double> weights(n_points_);
      for (std::size_t i = n_points_; i-- > 0;) {
        double sum = amounts_[k * n_points_ + i];
        for (std::size_t j = i + 1; j < n_points_; ++j) sum -= factor_[j * n_points_ + i] * weights[j];
        weights[i] = sum / factor_[i * n_points_ + i];
      }
      process_.weights.clear();
      for (const double weight : weights) process_.weights.push_back(static_cast<float>(rounded(weight, 5)));
      STEPCAST_ASSIGN(GaussianProcess process, GaussianProcess::make(process_, kLookupFeatures));
      p.corrections.push_back(std::move(process));
    }
    return p;
  }

 private:
  // Derivatives of half the loss by the amounts: curvature (lower triangle) and slope.
  struct Slopes {
    std::vector<double> matrix, slope;
  };

  static double ln(double us) { return std::log(std::max(us, 1e-6)); }
  [[nodiscard]] double start_us() const { return std::exp(amounts_[amounts_.size() - 2]); }
  [[nodiscard]] double sharpness() const { return 1 + std::exp(amounts_.back()); }

  void scale_features() {
    const auto n = static_cast<double>(features_.size());
    for (std::size_t f = 0; f < kLookupFeatures; ++f) {
      double sum = 0, squares = 0;
      for (const LookupFeatures& features : features_) {
        const auto x = static_cast<double>(features[f]);
        sum += x;
        squares += x * x;
      }
      const double deviation = std::sqrt(std::max(0.0, squares / n - sum * sum / (n * n)));
      const double scale = deviation > 1e-4 ? 1 / (deviation * kReach) : 0;
      process_.scale.push_back(static_cast<float>(rounded(scale, 4)));
      if (process_.scale[f] > 0) ++n_scaled_;
    }
  }

  // The features with a positive scale, scaled, in units of 1 / kPartsOfUnit.
  [[nodiscard]] std::vector<double> parts_of(const LookupFeatures& features) const {
    std::vector<double> parts;
    for (std::size_t f = 0; f < kLookupFeatures; ++f)
      if (process_.scale[f] > 0)
        parts.push_back(static_cast<double>(features[f] * process_.scale[f]) * GaussianProcess::kPartsOfUnit);
    return parts;
  }
  [[nodiscard]] double covariance(std::span<const double> parts, std::size_t point) const {
    double distance = 0;
    for (std::size_t f = 0; f < n_scaled_; ++f) {
      const double d = (parts[f] - process_.points[point * n_scaled_ + f]) / GaussianProcess::kPartsOfUnit;
      distance += d * d;
    }
    return GaussianProcess::covariance(distance);
  }

  void draw_points(std::uint64_t seed) {
    std::vector<std::size_t> order(features_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937_64 random{seed};
    n_points_ = std::min(order.size(), kMostPoints);
    for (std::size_t i = 0; i < n_points_; ++i) {
      std::swap(order[i], order[i + random() % (order.size() - i)]);
      for (const double part : parts_of(features_[order[i]]))
        process_.points.push_back(static_cast<std::int32_t>(std::lround(part)));
    }
  }

  void compare_with_points() {
    const std::size_t n = n_points_;
    factor_.resize(n * n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto first = process_.points.begin() + static_cast<std::ptrdiff_t>(i * n_scaled_);
      const std::vector<double> parts(first, first + static_cast<std::ptrdiff_t>(n_scaled_));
      for (std::size_t j = 0; j < n; ++j) factor_[i * n + j] = covariance(parts, j);
      factor_[i * n + i] += kJitter;
    }
    (void)detail::cholesky(factor_, n);  // positive definite because of the jitter
    values_.resize(features_.size() * n);
    for (std::size_t row = 0; row < features_.size(); ++row) {
      const std::vector<double> parts = parts_of(features_[row]);
      double* value = values_.data() + row * n;
      for (std::size_t j = 0; j < n; ++j) {
        double sum = covariance(parts, j);
        for (std::size_t i = 0; i < j; ++i) sum -= factor_[j * n + i] * value[i];
        value[j] = sum / factor_[j * n + j];
      }
    }
  }

  bool move(const Slopes& slopes, double damping) {
    const std::size_t n = amounts_.size();
    std::vector<double> factor = slopes.matrix, change = slopes.slope;
    for (std::size_t i = 0; i < n; ++i) factor[i * n + i] *= 1 + damping;
    if (!detail::cholesky(factor, n)) return false;
    detail::cholesky_solve(factor, n, change);
    for (std::size_t i = 0; i < n; ++i) amounts_[i] -= change[i];
    amounts_[n - 2] = std::clamp(amounts_[n - 2], std::log(kLeastStartUs), std::log(kMostStartUs));
    amounts_[n - 1] = std::clamp(amounts_[n - 1], std::log(0.05), std::log(kMostSharpness));
    return true;
  }

  // The sum of squares of all kernels and amounts.
  double loss(Slopes* slopes) {
    const std::size_t n = amounts_.size(), n_weights = n - 2;
    double sum = 0;
    for (std::size_t i = 0; i < n_weights; ++i) sum += kNoiseOfKernel * amounts_[i] * amounts_[i];
    if (slopes != nullptr) {
      for (std::size_t i = 0; i < n; ++i) {
        slopes->matrix[i * n + i] = i < n_weights ? kNoiseOfKernel : kUnbounded;
        slopes->slope[i] = i < n_weights ? kNoiseOfKernel * amounts_[i] : 0;
      }
    }
    std::vector<double> by(n);  // derivative of ln time by the amounts
    for (const Example& e : examples_) {
      const double error = ln_time(e, slopes == nullptr ? std::span<double>{} : by) - e.ln_time;
      sum += error * error;
      if (slopes == nullptr) continue;
      for (std::size_t i = 0; i < n; ++i) {
        slopes->slope[i] += error * by[i];
        for (std::size_t j = 0; j <= i; ++j) slopes->matrix[i * n + j] += by[i] * by[j];
      }
    }
    return sum;
  }

  // ln time of a kernel. If `by` is not empty, its derivatives by each amount are stored there.
  double ln_time(const Example& e, std::span<double> by) {
    works_.resize(e.n_tables);
    std::array<double, 2> sums{};
    for (std::size_t t = 0; t < e.n_tables; ++t) {
      const double* value = values_.data() + (e.first + t) * n_points_;
      for (std::size_t k = 0; k < n_works_; ++k) {
        const double learned =
            std::inner_product(value, value + n_points_, amounts_.data() + k * n_points_, 0.0);
        works_[t][k] =
            std::exp(ln_works_[e.first + t][k] + std::clamp(learned, -kMostCorrection, kMostCorrection));
        sums[k] += works_[t][k];
      }
    }
    const double start = start_us(), p = sharpness();
    double work = sums[0];
    std::array<double, 2> slope{1, 0};  // of the work by each sum
    double by_sharpness = 0;
    if (n_works_ == 2) {
      const double high = std::max(sums[0], sums[1]);
      const std::array<double, 2> a{sums[0] / high, sums[1] / high};
      const double powers = std::pow(a[0], p) + std::pow(a[1], p);
      work = high * std::pow(powers, 1 / p);
      double logs = 0;
      for (const std::size_t k : {0U, 1U}) {
        slope[k] = std::pow(sums[k] / work, p - 1);
        if (a[k] > 0) logs += std::pow(a[k], p) * std::log(a[k]);
      }
      by_sharpness = work * (logs / (p * powers) - std::log(powers) / (p * p));
    }
    const double time = start + work;
    if (by.empty()) return std::log(time);
    std::ranges::fill(by, 0.0);
    by[by.size() - 2] = start / time;
    by.back() = by_sharpness * (p - 1) / time;
    for (std::size_t t = 0; t < e.n_tables; ++t) {
      const double* value = values_.data() + (e.first + t) * n_points_;
      for (std::size_t k = 0; k < n_works_; ++k) {
        const double d = slope[k] * works_[t][k] / time;
        for (std::size_t j = 0; j < n_points_; ++j) by[k * n_points_ + j] += d * value[j];
      }
    }
    return std::log(time);
  }

  std::size_t n_works_, n_points_ = 0, n_scaled_ = 0;
  std::vector<LookupFeatures> features_;         // [table of a kernel]
  std::vector<std::array<double, 2>> ln_works_;  // [table of a kernel]
  std::vector<std::array<double, 2>> works_;     // of the current kernel
  std::vector<Example> examples_;
  GaussianProcess::Parameters process_;
  std::vector<double> factor_, values_;  // [point][point]; [table of a kernel][point]
  std::vector<double> amounts_;          // [work][point]; ln of the start, ln of the sharpness above 1
};

KernelFitNote::Candidate candidate_of(const std::string& family, const std::vector<double>& errors) {
  constexpr double kLeast = 4e-4;  // of the error, as in the publication
  KernelFitNote::Candidate c{.family = family};
  for (const double e : errors) {
    c.mape_percent += 100 * e / static_cast<double>(errors.size());
    c.gmae_percent += std::log(e + kLeast) / static_cast<double>(errors.size());
  }
  c.gmae_percent = 100 * std::exp(c.gmae_percent);
  return c;
}

}  // namespace

LookupTimes lookup_times(const LearnedLookup& model, const LookupMeasurement& kernel, const Device& device) {
  const LookupModel analytic{device};
  LookupCost plain, learned;
  for (const LookupMeasurement::Table& t : kernel.tables) {
    const AccessPattern pattern = pattern_of(kernel, t);
    LookupCost cost = analytic.cost(lookup_of(kernel, t, pattern));
    plain += cost;
    model.correct(lookup_features(kernel.bags, t.rows, t.pooling, t.dim, t.reuse), cost);
    learned += cost;
  }
  const bool forward = kernel.direction == Direction::forward;
  return {model.kernel_us(learned), forward ? analytic.forward_us(plain) : analytic.backward_us(plain)};
}

Result<LearnedLookup> train_lookup(std::span<const LookupMeasurement> kernels, const Device& device,
                                   const LookupFitOptions& options) {
  if (kernels.empty()) return Error{"no kernels to train on"};
  Training training{kernels, device, options.seed};
  training.run();
  STEPCAST_TRY(not_stopped());
  STEPCAST_ASSIGN(LearnedLookup::Parameters p, std::move(training).finish());
  p.dtype = kernels.front().dtype;
  p.direction = kernels.front().direction;
  return LearnedLookup::make(std::move(p));
}

Result<KernelFit> fit_lookup_models(std::span<const LookupMeasurement> kernels, const Device& device,
                                    const LookupFitOptions& options) {
  std::map<std::string, std::vector<LookupMeasurement>> by_record;
  for (const LookupMeasurement& m : kernels)
    by_record[LearnedLookup::record_name(m.dtype, m.direction)].push_back(m);
  KernelFit fit;
  for (auto& [name, all] : by_record) {
    if (all.size() < kFewestLookupKernels) {
      return Error{fmt::format("{} has too few kernels to learn from", name)}
          .found(fmt::format("{}", all.size()))
          .expected(fmt::format("at least {}", kFewestLookupKernels));
    }
    std::mt19937_64 random{options.seed};
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random() % i]);
    const std::size_t n_held = all.size() / kFolds;
    const std::span<const LookupMeasurement> held{all.data(), n_held},
        rest{all.data() + n_held, all.size() - n_held};
    STEPCAST_ASSIGN(const LearnedLookup before, train_lookup(rest, device, options));
    std::vector<double> errors, plain, logs;
    for (const LookupMeasurement& m : held) {
      const LookupTimes us = lookup_times(before, m, device);
      errors.push_back(std::abs(us.learned_us / m.time_us - 1));
      plain.push_back(std::abs(us.analytic_us / m.time_us - 1));
      logs.push_back(std::log(m.time_us / us.learned_us));
    }
    STEPCAST_ASSIGN(const LearnedLookup last, train_lookup(all, device, options));
    LearnedLookup::Parameters p = last.parameters();
    // The band always includes the forecast, even if all held-out values are on one side.
    p.log_p10 = std::min(0.0, quantile(logs, 0.1));
    p.log_p90 = std::max(0.0, quantile(std::move(logs), 0.9));
    STEPCAST_ASSIGN(const LearnedLookup model, LearnedLookup::make(std::move(p)));
    ModelRecord record{.name = name, .kind = std::string{LearnedLookup::kRecordKind}, .device = device.name};
    record.parameters = model.write();
    record.provenance.n_rows = all.size();
    std::vector<std::uint32_t> hashes;
    for (const LookupMeasurement& m : all) hashes.push_back(m.hash);
    record.provenance.row_hashes = RowHashes{std::move(hashes)};
    fit.records.push_back(std::move(record));
    fit.notes.push_back(
        {name, all.size(), {candidate_of("process", errors), candidate_of("analytic", plain)}, "process"});
  }
  return fit;
}

}  // namespace stepcast

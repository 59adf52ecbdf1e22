#include "calibrate/lookup_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/base/stop.h"
#include "stepcast/operation/optimizer_rule.h"

#include "calibrate/detail/perceptron_training.h"

namespace stepcast {
namespace {

constexpr std::size_t kBatch = 16;
constexpr double kLearningRate = 4e-3, kWeightDecay = 1e-3;
// Ranges of the two numbers beside the networks.
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

// A kernel as training sees it: tables with their features and what the analytic model says of their works.
struct Example {
  std::size_t first = 0, n_tables = 0;  // rows of features
  double ln_time = 0;
};

class Training {
 public:
  Training(std::span<const LookupMeasurement> kernels, const Device& device, const LookupFitOptions& options)
      : options_(options),
        random_(options.seed),
        n_works_(LearnedLookup::Parameters::works_of(kernels.front().direction)) {
    const LookupModel analytic{device};
    double least_us = kernels.front().time_us;
    for (const LookupMeasurement& m : kernels) {
      examples_.push_back({ln_works_.size(), m.tables.size(), std::log(m.time_us)});
      least_us = std::min(least_us, m.time_us);
      for (const LookupMeasurement::Table& t : m.tables) {
        const LookupCost cost = analytic.cost(lookup_of(m, t, pattern_of(m, t)));
        const LookupFeatures f = lookup_features(m.bags, t.rows, t.pooling, t.dim, t.reuse);
        features_.insert(features_.end(), f.begin(), f.end());
        const bool forward = m.direction == Direction::forward;
        ln_works_.push_back({ln(forward ? cost.missed_us : cost.backward_us), ln(cost.gather_us)});
      }
    }
    for (std::size_t k = 0; k < n_works_; ++k)
      networks_.emplace_back(features_, kLookupFeatures, options.hidden, random_);
    scaled_.resize(features_.size());
    for (std::size_t row = 0; row < ln_works_.size(); ++row)
      networks_[0].scale_inputs(of(features_, row), of(scaled_, row));
    // A start is at most what the shortest kernel takes.
    const double start = kernels.front().direction == Direction::forward
                             ? analytic.forward_us({.forward_us = 1e-9})
                             : analytic.backward_us({.lookups = 1});
    scalars_ = {static_cast<float>(
                    std::log(std::clamp(std::min(start, 0.8 * least_us), kLeastStartUs, kMostStartUs))),
                static_cast<float>(std::log(3.0))};
  }

  void run() {
    for (int step = 0; step < options_.steps && !is_stop_requested(); ++step) {
      for (std::size_t b = 0; b < kBatch; ++b) learn(examples_[random_() % examples_.size()]);
      const double progress = static_cast<double>(step) / options_.steps;
      const double rate = kLearningRate * 0.5 * (1 + std::cos(3.14159265358979 * progress));
      for (detail::PerceptronTrainer& network : networks_) network.step(rate, kWeightDecay);
      adam_.step(scalars_, slopes_, rate, 1);
      slopes_ = {0, 0};
      scalars_[0] = std::clamp(scalars_[0], static_cast<float>(std::log(kLeastStartUs)),
                               static_cast<float>(std::log(kMostStartUs)));
      scalars_[1] = std::clamp(scalars_[1], static_cast<float>(std::log(0.05)),
                               static_cast<float>(std::log(kMostSharpness)));
    }
  }

  Result<LearnedLookup::Parameters> finish() && {
    LearnedLookup::Parameters p;
    p.least.fill(0);
    for (std::size_t f = 0; f < kLookupFeatures; ++f) {
      p.least[f] = p.most[f] = features_[f];
      for (std::size_t i = f; i < features_.size(); i += kLookupFeatures) {
        p.least[f] = std::min(p.least[f], features_[i]);
        p.most[f] = std::max(p.most[f], features_[i]);
      }
    }
    p.start_us = std::exp(static_cast<double>(scalars_[0]));
    p.sharpness = sharpness();
    for (detail::PerceptronTrainer& network : networks_) {
      STEPCAST_ASSIGN(Perceptron perceptron, Perceptron::make(std::move(network).finish(1), kLookupFeatures));
      p.corrections.push_back(std::move(perceptron));
    }
    return p;
  }

 private:
  static double ln(double us) { return std::log(std::max(us, 1e-6)); }
  template <class T>
  static std::span<T> of(std::vector<T>& rows, std::size_t row) {
    return std::span{rows}.subspan(row * kLookupFeatures, kLookupFeatures);
  }
  [[nodiscard]] double sharpness() const { return 1 + std::exp(static_cast<double>(scalars_[1])); }

  // Adds the gradient of (ln predicted - ln measured)^2 / 2 of one kernel.
  void learn(const Example& e) {
    works_.resize(e.n_tables);
    std::array<double, 2> sums{};
    for (std::size_t t = 0; t < e.n_tables; ++t) {
      for (std::size_t k = 0; k < n_works_; ++k) {
        const auto by = static_cast<double>(networks_[k].output(of(scaled_, e.first + t)));
        works_[t][k] = std::exp(ln_works_[e.first + t][k] + by);
        sums[k] += works_[t][k];
      }
    }
    const double start = std::exp(static_cast<double>(scalars_[0])), p = sharpness();
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
    const double error = (std::log(time) - e.ln_time) / static_cast<double>(kBatch);
    slopes_[0] += static_cast<float>(error * start / time);
    slopes_[1] += static_cast<float>(error * by_sharpness * (p - 1) / time);
    for (std::size_t t = 0; t < e.n_tables; ++t) {
      for (std::size_t k = 0; k < n_works_; ++k) {
        const double d = error * slope[k] * works_[t][k] / time;
        if (std::abs(d) < 1e-7) continue;
        (void)networks_[k].output(of(scaled_, e.first + t));
        networks_[k].add_gradient(static_cast<float>(d));
      }
    }
  }

  LookupFitOptions options_;
  std::mt19937_64 random_;
  std::size_t n_works_;
  std::vector<float> features_, scaled_;         // [table of a kernel][feature]
  std::vector<std::array<double, 2>> ln_works_;  // [table of a kernel]
  std::vector<std::array<double, 2>> works_;     // of the kernel that is learned
  std::vector<Example> examples_;
  std::vector<detail::PerceptronTrainer> networks_;
  std::array<float, 2> scalars_{}, slopes_{};  // ln of the start, ln of the sharpness above 1
  detail::Adam adam_{2};
};

KernelFitNote::Candidate candidate_of(const std::string& family, const std::vector<double>& errors) {
  constexpr double kLeast = 4e-4;  // of the published error
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
  Training training{kernels, device, options};
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
    // Around the forecast itself, also where all that was held out lies to one side of it.
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
        {name, all.size(), {candidate_of("networks", errors), candidate_of("analytic", plain)}, "networks"});
  }
  return fit;
}

}  // namespace stepcast

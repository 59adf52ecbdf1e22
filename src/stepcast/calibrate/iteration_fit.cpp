#include "stepcast/calibrate/iteration_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/cost/step_factors.h"
#include "stepcast/predict/step_model.h"

namespace stepcast {
namespace {

// How far apart a good model and a clean run are, in ln. Assumed.
constexpr double kNoise = 0.03;
// Factors of one machine move together, so single ones need many rounds; most stop early.
constexpr int kRounds = 40;
constexpr double kEnough = 1e-3;  // of the cost, gained by a round
constexpr int kGoldenSteps = 12;

// Of one residual ln(measured / predicted) in units of the noise. Runs slower than predicted: quadratic up to
// 2, then as the square root; faster ones cannot be stragglers: quadratic, then linear.
double loss(double residual) {
  const double z = residual / kNoise;
  if (z > 2) return 4 + 4 * (std::sqrt(2 * z) - 2);
  if (z < -2) return 4 + 4 * (-z - 2);
  return z * z;
}

// Predicts all steps under given assumptions.
class Steps {
 public:
  explicit Steps(std::span<const MeasuredStep> steps) : steps_(steps) {}

  // [step] -> predicted ms; 0 where it cannot be.
  std::vector<double> predict(const StepAssumptions& assumptions,
                              std::vector<std::string>* skipped = nullptr) {
    std::vector<double> result(steps_.size(), 0.0);
    std::map<const Platform*, std::unique_ptr<StepModel>> models;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      auto& model = models[steps_[i].platform];
      if (model == nullptr) {
        auto& kept = kept_[steps_[i].platform];
        if (kept == nullptr) kept = std::make_unique<StepModel>(*steps_[i].platform, assumptions);
        kept->set_assumptions(assumptions);
        model = std::move(kept);
      }
      Result<StepPrediction> p = model->predict(steps_[i].model, steps_[i].layout);
      if (p) {
        result[i] = p->step.time.value() / 1e3;
      } else if (skipped != nullptr) {
        skipped->push_back(fmt::format("run {}: {}", i + 1, p.error().message()));
      }
    }
    for (auto& [platform, model] : models) kept_[platform] = std::move(model);
    return result;
  }

 private:
  std::span<const MeasuredStep> steps_;
  std::map<const Platform*, std::unique_ptr<StepModel>> kept_;
};

struct Errors {
  double mape = 0, median = 0;
  std::size_t n = 0;
};

Errors errors_of(std::span<const MeasuredStep> steps, const std::vector<double>& predicted) {
  std::vector<double> apes;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (predicted[i] > 0) apes.push_back(100 * std::abs(predicted[i] / steps[i].step_time_ms - 1));
  }
  Errors e;
  e.n = apes.size();
  for (const double ape : apes) e.mape += ape / static_cast<double>(apes.size());
  e.median = upper_median(apes);
  return e;
}

}  // namespace

std::span<const FittedFactor> fitted_factors() {
  using A = StepAssumptions;
  static constexpr std::array kFactors = {
      FittedFactor{"gemm_factor", &A::gemm_factor, 0.10},
      FittedFactor{"memory_bound_factor", &A::memory_bound_factor, 0.15},
      FittedFactor{"attention_factor", &A::attention_factor, 0.15},
      FittedFactor{"communication_factor", &A::communication_factor, 0.20},
  };
  return kFactors;
}

Result<IterationFit> fit_iterations(std::span<const MeasuredStep> steps, const StepAssumptions& start) {
  IterationFit fit;
  Steps all{steps};
  const Errors before = errors_of(steps, all.predict(start, &fit.skipped));
  if (before.n == 0) {
    return Error{fit.skipped.empty() ? std::string{"there is no measured step"}
                                     : fmt::format("no step can be predicted: {}", fit.skipped.front())};
  }
  fit.n = before.n;
  fit.mape_before = before.mape;
  fit.median_before = before.median;

  const auto cost = [&](const StepAssumptions& a) {
    double sum = 0;
    for (const FittedFactor& f : fitted_factors()) {
      const double z = std::log(a.*(f.member) / start.*(f.member)) / f.prior_sd;
      sum += z * z;
    }
    const std::vector<double> predicted = all.predict(a);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (predicted[i] > 0) sum += loss(std::log(steps[i].step_time_ms / predicted[i]));
    }
    return sum;
  };
  // One factor at a time by golden sections, a few rounds over all of them.
  constexpr double kGolden = 0.6180339887498949;
  StepAssumptions best = start;
  for (int round = 0; round < kRounds; ++round) {
    const double before_round = cost(best);
    const double reach = round == 0 ? 2.5 : 1.0;
    for (const FittedFactor& f : fitted_factors()) {
      const auto at = [&](double log_factor) {
        StepAssumptions a = best;
        a.*(f.member) = start.*(f.member) * std::exp(log_factor);
        return cost(a);
      };
      const double here = std::log(best.*(f.member) / start.*(f.member));
      double low = here - reach * f.prior_sd, high = here + reach * f.prior_sd;
      double x1 = high - kGolden * (high - low), x2 = low + kGolden * (high - low);
      double c1 = at(x1), c2 = at(x2);
      for (int i = 0; i < kGoldenSteps; ++i) {
        if (c1 <= c2) {
          high = x2;
          x2 = x1;
          c2 = c1;
          x1 = high - kGolden * (high - low);
          c1 = at(x1);
        } else {
          low = x1;
          x1 = x2;
          c1 = c2;
          x2 = low + kGolden * (high - low);
          c2 = at(x2);
        }
      }
      const double found = c1 <= c2 ? x1 : x2;
      if (at(found) < cost(best)) best.*(f.member) = start.*(f.member) * std::exp(found);
    }
    if (before_round - cost(best) < kEnough) break;
  }
  const Errors after = errors_of(steps, all.predict(best));
  fit.assumptions = best;
  fit.mape_after = after.mape;
  fit.median_after = after.median;
  return fit;
}

ModelRecord step_factors_record(const StepAssumptions& assumptions) {
  ModelRecord record;
  record.name = kStepFactorsKind;
  record.kind = kStepFactorsKind;
  StepFactors factors;
  factors.gemm = assumptions.gemm_factor;
  factors.memory_bound = assumptions.memory_bound_factor;
  factors.attention = assumptions.attention_factor;
  factors.communication = assumptions.communication_factor;
  record.parameters = factors.write();
  return record;
}

}  // namespace stepcast

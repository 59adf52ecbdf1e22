#include "calibrate/iteration_fit.h"

#include <array>
#include <cmath>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/base/stop.h"
#include "stepcast/cost/step_factors.h"
#include "stepcast/predict/step_model.h"

#include "calibrate/detail/minimization.h"

namespace stepcast {
namespace {

// Deviation in ln between a good model and a clean run. Assumed.
constexpr double kNoise = 0.03;
// Above this multiple of the deviation, errors have a linear loss. Assumed.
constexpr double kRobustSigmas = 1.5;
// A factor is not fitted if more than this share of its prior uncertainty remains.
constexpr double kMostUncertain = 0.85;
constexpr double kStep = 0.02;  // for derivatives, in ln
constexpr int kIterations = 12;

// Predicts all steps under given assumptions.
class Steps {
 public:
  explicit Steps(std::span<const MeasuredStep> steps) : steps_(steps) {}

  // [step] -> predicted ms; 0 if the step cannot be predicted.
  std::vector<double> predict(const StepAssumptions& assumptions,
                              std::vector<std::string>* skipped = nullptr) {
    std::vector<double> result(steps_.size(), 0.0);
    for (std::size_t i = 0; i < steps_.size() && !is_stop_requested(); ++i) {
      const Platform* const platform = steps_[i].platform;
      auto kept = kept_.find(platform);
      if (kept == kept_.end()) kept = kept_.emplace(platform, StepModel{*platform}).first;
      Result<StepPrediction> p = kept->second.with(assumptions).predict(steps_[i].model, steps_[i].layout);
      if (p)
        result[i] = p->step.time.value() / 1e3;
      else if (skipped != nullptr)
        skipped->push_back(fmt::format("run {}: {}", i + 1, p.error().message()));
    }
    return result;
  }

 private:
  std::span<const MeasuredStep> steps_;
  std::map<const Platform*, StepModel> kept_;
};

struct Errors {
  double mape = 0, median = 0;
  std::size_t n = 0;
};

Errors errors_of(std::span<const MeasuredStep> steps, const std::vector<double>& predicted) {
  std::vector<double> apes;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (predicted[i] > 0) apes.push_back(100 * std::abs(predicted[i] / steps[i].step_time_ms - 1));
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
      FittedFactor{"unmeasured_kernels_factor", &A::unmeasured_kernels_factor, 0.40},
      FittedFactor{"gemm_factor", &A::gemm_factor, 0.10},
      FittedFactor{"fp8_gemm_factor", &A::fp8_gemm_factor, 0.10},
      FittedFactor{"memory_bound_factor", &A::memory_bound_factor, 0.15},
      FittedFactor{"attention_factor", &A::attention_factor, 0.15},
      FittedFactor{"communication_factor", &A::communication_factor, 0.20},
      FittedFactor{"expert_factor", &A::expert_factor, 0.25},
  };
  return kFactors;
}

namespace {

StepAssumptions moved(const StepAssumptions& start, std::span<const FittedFactor> factors,
                      std::span<const double> logs) {
  StepAssumptions a = start;
  for (std::size_t f = 0; f < factors.size(); ++f) a.*(factors[f].member) *= std::exp(logs[f]);
  return a;
}

// The factors that the steps determine. For the others the posterior hardly differs from the prior. With derivatives J of
// ln(time), the posterior covariance is (J^T J / noise^2 + prior^-2)^-1.
std::vector<FittedFactor> determined(Steps& all, const StepAssumptions& start,
                                     const std::vector<double>& predicted, IterationFit& fit) {
  const std::span<const FittedFactor> factors = fitted_factors();
  const std::size_t n = factors.size();
  std::vector<double> information(n * n, 0.0);
  std::vector<std::vector<double>> derivative(n);
  for (std::size_t f = 0; f < n; ++f) {
    std::vector<double> logs(n, 0.0);
    logs[f] = kStep;
    const std::vector<double> there = all.predict(moved(start, factors, logs));
    for (std::size_t i = 0; i < there.size(); ++i) {
      const bool both = there[i] > 0 && predicted[i] > 0;
      derivative[f].push_back(both ? std::log(there[i] / predicted[i]) / kStep : 0.0);
    }
  }
  for (std::size_t f = 0; f < n; ++f) {
    for (std::size_t g = 0; g <= f; ++g) {
      double sum = f == g ? 1 / (factors[f].prior_sd * factors[f].prior_sd) : 0.0;
      for (std::size_t i = 0; i < predicted.size(); ++i)
        sum += derivative[f][i] * derivative[g][i] / (kNoise * kNoise);
      information[f * n + g] = sum;
    }
  }
  std::vector<FittedFactor> result;
  if (!detail::cholesky(information, n)) return {factors.begin(), factors.end()};
  const std::vector<double> covariance = detail::cholesky_inverse(information, n);
  for (std::size_t f = 0; f < n; ++f) {
    if (std::sqrt(covariance[f * n + f]) < kMostUncertain * factors[f].prior_sd)
      result.push_back(factors[f]);
    else
      fit.undetermined.push_back(factors[f].name);
  }
  return result;
}

}  // namespace

Result<IterationFit> fit_iterations(std::span<const MeasuredStep> steps, const StepAssumptions& start) {
  IterationFit fit;
  Steps all{steps};
  const std::vector<double> predicted = all.predict(start, &fit.skipped);
  STEPCAST_TRY(not_stopped());
  const Errors before = errors_of(steps, predicted);
  if (before.n == 0) {
    return Error{fit.skipped.empty() ? std::string{"there is no measured step"}
                                     : fmt::format("no step can be predicted: {}", fit.skipped.front())};
  }
  fit.n = before.n;
  fit.mape_before = before.mape;
  fit.median_before = before.median;
  fit.assumptions = start;

  const std::vector<FittedFactor> factors = determined(all, start, predicted, fit);
  if (!factors.empty()) {
    detail::LeastSquares problem;
    for (const FittedFactor& f : factors) {
      problem.low.push_back(-4 * f.prior_sd);
      problem.high.push_back(4 * f.prior_sd);
      problem.centre.push_back(0);
      problem.spread.push_back(f.prior_sd);
    }
    problem.weights.assign(steps.size(), 1.0);
    problem.robust_scale = kRobustSigmas;
    problem.max_iterations = kIterations;
    problem.residuals = [&](std::span<const double> logs, std::span<double> residuals) {
      const std::vector<double> times = all.predict(moved(start, factors, logs));
      for (std::size_t i = 0; i < times.size(); ++i)
        residuals[i] = times[i] > 0 ? std::log(steps[i].step_time_ms / times[i]) / kNoise : 0.0;
    };
    std::vector<double> logs(factors.size(), 0.0);
    problem.minimise(logs);
    STEPCAST_TRY(not_stopped());
    fit.assumptions = moved(start, factors, logs);
  }
  const Errors after = errors_of(steps, all.predict(fit.assumptions));
  fit.mape_after = after.mape;
  fit.median_after = after.median;
  return fit;
}

ModelRecord step_factors_record(const StepAssumptions& assumptions) {
  ModelRecord record{.name = std::string{kStepFactorsKind}, .kind = std::string{kStepFactorsKind}};
  StepFactors factors{.gemm = assumptions.gemm_factor,
                      .fp8_gemm = assumptions.fp8_gemm_factor,
                      .unmeasured_kernels = assumptions.unmeasured_kernels_factor};
  factors.memory_bound = assumptions.memory_bound_factor;
  factors.attention = assumptions.attention_factor;
  factors.communication = assumptions.communication_factor;
  factors.experts = assumptions.expert_factor;
  record.parameters = factors.write();
  return record;
}

}  // namespace stepcast

// Corrects forecasts by steps that were measured on the same machine: what the measured steps imply for a
// similar step.
//
//   STEPCAST_ASSIGN(const Anchor anchor, Anchor::of(steps, measured));
//   const AnchoredStep said = anchor.at(traits_of(model, layout, forecast));         // said.factor(), said.log_sd
//   STEPCAST_ASSIGN(const StepAssumptions there, anchor.assumptions(steps, model, layout));
//   steps.with(there).predict(model, layout);                                        // the anchored forecast
//
// Model: ln(measured / forecast) is a sum of errors. There is one error each of computation, communication
// and host time, weighted by their shares of a step; one shared by steps that are similar in GPUs, tokens,
// size, type and degrees; another one shared by those that also train the same model; and one of every single
// run. The sizes of these errors come from published steps (docs/constants.md). They are used at three
// scales, since software stacks differ in how even they are, and with and without one large error that all
// steps of a stack share. The answer is a Gaussian process regression, averaged over the scales weighted by
// their likelihood. A single measured step cannot identify which of its parts is off, so it changes all of
// them a little.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/predict/step_assumptions.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/predict/step_prediction.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// One measured step, in milliseconds.
struct MeasuredTime {
  Transformer model;
  Layout layout;  // as returned by resolve()
  double step_time_ms = 0;
};
struct MeasuredTimes {
  std::vector<MeasuredTime> steps;
  std::string from;  // where they were read from, for notes
};

// The properties of a step that an Anchor uses: the weights and positions for its covariance.
struct AnchorTraits {
  double compute = 1, communication = 0, host = 0;  // shares of the forecast; the sum is 1
  // Scaled position: logarithms of sizes and degrees, and the type. Errors of steps decay with distance.
  std::array<double, 9> place{};
  std::array<double, 5> model{};      // sizes; two steps with equal values train the same model
  double log_fast = 0, log_slow = 0;  // ln(forecast / p10) and ln(p90 / forecast)
};
// Traits of a step with this forecast. `layout` as returned by resolve().
[[nodiscard]] AnchorTraits traits_of(const Transformer& model, const Layout& layout,
                                     const StepPrediction& forecast);

// The correction of another step. All logarithms are natural, of measured time / forecast.
struct AnchoredStep {
  double compute = 0, communication = 0, host = 0;  // log error of each part of the step
  double alike = 0;                                 // log error of the whole step, from similar steps
  double log_factor = 0;  // of the step: `alike` plus the errors of the parts weighted by their shares
  double log_sd = 0;      // standard deviation of the remaining error
  // Expected measured time / forecast: exp(log_factor).
  [[nodiscard]] double factor() const;
};

// A set of measured steps and the solved regression. Immutable after construction.
class Anchor {
 public:
  // Limit of the number of measured steps, because the solution takes cubic time in it.
  static constexpr std::size_t kMostSteps = 400;

  // `steps` must price the machine as it was measured, without what-ifs. Errors: no step, more than
  // kMostSteps, an invalid time, a step that cannot be forecast, or a measured time that differs from its
  // forecast by more than a factor of 20, which indicates another unit or another job.
  [[nodiscard]] static Result<Anchor> of(const StepModel& steps, std::span<const MeasuredTime> measured);
  // From known traits [step] and ln(measured / forecast) of the same steps.
  Anchor(std::vector<AnchorTraits> traits, std::vector<double> errors);

  // The correction of a step with these traits.
  [[nodiscard]] AnchoredStep at(const AnchorTraits& question) const;
  // The assumptions of `question` with the factors and the band of the anchored forecast. Their step time is
  // the forecast without the anchor times AnchoredStep::factor(). Errors: those of StepModel::predict().
  [[nodiscard]] Result<StepAssumptions> assumptions(const StepModel& question, const Transformer& model,
                                                    const Layout& layout) const;

  // [measured step] ln(measured / forecast).
  [[nodiscard]] std::span<const double> errors() const { return errors_; }
  // The part of the error of measured step i that is attributed to this run alone (natural logarithm).
  [[nodiscard]] double left(std::size_t i) const;

 private:
  std::vector<AnchorTraits> traits_;
  std::vector<double> errors_;
  // The solution for one hypothesis on the size of the errors.
  struct Scale {
    double weight = 0;  // posterior probability, given the measured steps; the sum over scales is 1
    // square: factor on all variances except that of the shared error. shared: variance of the shared error.
    double square = 1, shared = 0;
    std::vector<double> solved;  // inverse covariance times errors
    std::vector<double> factor;  // Cholesky factor of the covariance, lower triangle, row-major
  };
  std::vector<Scale> scales_;
  bool in_their_bands_ = true;  // every measured step is within the band of its forecast
};

// Multiplies the times of computation, communication and host by these factors.
[[nodiscard]] StepAssumptions slowed(StepAssumptions assumptions, double compute, double communication,
                                     double host);

}  // namespace stepcast

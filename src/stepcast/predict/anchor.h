// A forecast held against steps that were measured on its machine: what they say of a step like them.
//
//   STEPCAST_ASSIGN(const Anchor anchor, Anchor::of(steps, measured));
//   const AnchoredStep said = anchor.at(traits_of(model, layout, forecast));         // said.factor(), said.log_sd
//   STEPCAST_ASSIGN(const StepAssumptions there, anchor.assumptions(steps, model, layout));
//   steps.with(there).predict(model, layout);                                        // the anchored forecast
//
// The logarithm of measured over forecast is taken to be a sum of errors: of computation, communication and host time, by
// their shares of a step; one that steps have in common which are alike in GPUs, tokens, size, type and degrees; another one
// of those that train the same model besides; and one of every single run. How large each is was looked up in published steps
// (docs/constants.md), at three scales, since stacks differ in how even they are, and with and without one large error that
// all steps of a stack share. What measured steps say follows by linear algebra (a Gaussian process), the scales weighted by
// how likely they make what was measured. One step cannot tell its parts apart: it moves all of them a little.
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

struct MeasuredTime {
  Transformer model;
  Layout layout;  // as resolve() gives it
  double step_time_ms = 0;
};
struct MeasuredTimes {
  std::vector<MeasuredTime> steps;
  std::string from;  // what they were read from, for notes
};

// What an Anchor looks at in a step.
struct AnchorTraits {
  double compute = 1, communication = 0, host = 0;  // shares of the forecast; they sum to 1
  std::array<double, 9>
      place{};  // in units in which errors stay alike: logarithms of sizes and degrees, and the type
  std::array<double, 5> model{};      // sizes; equal in all: the same one
  double log_fast = 0, log_slow = 0;  // of the forecast over its p10, and of its p90 over it
};
[[nodiscard]] AnchorTraits traits_of(const Transformer& model, const Layout& layout,
                                     const StepPrediction& forecast);

// What measured steps say of another one. Logarithms are natural, of measured over forecast.
struct AnchoredStep {
  double compute = 0, communication = 0, host = 0;  // of all of these parts
  double alike = 0;                                 // of the whole step: of those that are alike
  double log_factor = 0;  // of the step: `alike` and what its shares make of the parts
  double log_sd = 0;      // standard deviation of what stays open
  [[nodiscard]] double factor() const;
};

class Anchor {
 public:
  // More are an error: the solution takes their third power.
  static constexpr std::size_t kMostSteps = 400;

  // `steps` prices the machine as it was measured: no what-ifs. Errors: no step, too many, a time that is none; a step that
  // cannot be forecast; one that takes more than 20 times its forecast, or less than a 20th: another unit, or another job.
  [[nodiscard]] static Result<Anchor> of(const StepModel& steps, std::span<const MeasuredTime> measured);
  // Of traits that are known already, [step], and the logarithms of measured over forecast.
  Anchor(std::vector<AnchorTraits> traits, std::vector<double> errors);

  [[nodiscard]] AnchoredStep at(const AnchorTraits& question) const;
  // Those of `question` with the factors and the band of the anchored forecast: its step time is that without anchor times
  // AnchoredStep::factor(). Errors: those of StepModel::predict().
  [[nodiscard]] Result<StepAssumptions> assumptions(const StepModel& question, const Transformer& model,
                                                    const Layout& layout) const;

  [[nodiscard]] std::span<const double> errors() const { return errors_; }
  // Of measured step i, what the sum of errors leaves to that run alone.
  [[nodiscard]] double left(std::size_t i) const;

 private:
  std::vector<AnchorTraits> traits_;
  std::vector<double> errors_;
  struct Scale {
    double weight = 0;              // how likely it is, given what was measured
    double square = 1, shared = 0;  // of all variances but that of the error of all steps; that one
    std::vector<double> solved;     // covariance^-1 errors
    std::vector<double> factor;     // of the covariance, as cholesky() gives it
  };
  std::vector<Scale> scales_;
  bool in_their_bands_ = true;  // every measured step lies in the band of its own forecast
};

// Every time of a step so many times as long, whatever its part.
[[nodiscard]] StepAssumptions slowed(StepAssumptions assumptions, double compute, double communication,
                                     double host);

}  // namespace stepcast

// Gaussian process regression on the log errors of measured steps. See anchor.h for the model.
#include "stepcast/predict/anchor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace stepcast {
namespace {

// Standard deviations of the errors, in ln: of computation; of communication and host time; of similar steps;
// of steps with the same model and type; of a single run. Round numbers, tuned on all visible sets of
// `validate iterations`. Half and twice each value score within 0.5 points (docs/constants.md).
constexpr double kOfCompute = 0.05, kOfWaiting = 0.10;
constexpr double kOfAlike = 0.08, kOfModel = 0.07, kOfRun = 0.035;
// Errors of similar steps decay by a factor e over this distance of AnchorTraits::place.
constexpr double kReach = 1.5;
// Standard deviation (in ln) of one large error that all steps of a stack share, and the prior probability
// that there is one.
constexpr double kShared = 0.35, kSharedOften = 0.3;
// Hypotheses on how uneven a stack is: factor on all standard deviations above, and its prior probability.
struct Unevenness {
  double times, often;
};
constexpr std::array<Unevenness, 3> kUneven = {{{0.5, 0.35}, {1, 0.4}, {2, 0.25}}};
// Distance from the median to the 10th or 90th percentile of a normal distribution, in standard deviations.
constexpr double kTenth = 1.2815515655446004;
// Largest accepted ratio of measured time to forecast, in either direction.
constexpr double kMostTimes = 20;

// log2, with values below 1 treated as 1.
double log2_of(double value) { return std::log2(std::max(1.0, value)); }

// Euclidean distance of the scaled positions.
double distance(const AnchorTraits& a, const AnchorTraits& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.place.size(); ++i)
    squares += (a.place[i] - b.place[i]) * (a.place[i] - b.place[i]);
  return std::sqrt(squares);
}

double square(double x) { return x * x; }

// Covariance of the errors of two steps at scale 1 and distance `apart`. Excludes the error shared by all
// steps and the error of a single run.
double covariance(const AnchorTraits& a, const AnchorTraits& b, double apart) {
  const double alike = std::exp(-apart / kReach);
  return square(kOfCompute) * a.compute * b.compute + square(kOfWaiting) * a.communication * b.communication +
         square(kOfWaiting) * a.host * b.host +
         alike * (square(kOfAlike) + (a.model == b.model ? square(kOfModel) : 0));
}

// Replaces the lower triangle of a symmetric positive definite n x n matrix by its Cholesky factor. Rounding
// cannot make the matrix indefinite, because the variance of a single run is on its diagonal.
void cholesky(std::vector<double>& m, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = m[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= m[i * n + k] * m[j * n + k];
      m[i * n + j] = i == j ? std::sqrt(sum) : sum / m[j * n + j];
    }
  }
}

// Solve L x = v and L^T x = v for the lower triangle L. The result replaces v.
void solve_lower(const std::vector<double>& l, std::vector<double>& v) {
  const std::size_t n = v.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) v[i] -= l[i * n + k] * v[k];
    v[i] /= l[i * n + i];
  }
}
void solve_upper(const std::vector<double>& l, std::vector<double>& v) {
  const std::size_t n = v.size();
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) v[i] -= l[k * n + i] * v[k];
    v[i] /= l[i * n + i];
  }
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Standard deviation, in ln, that the band of the forecast implies.
double log_sd_of(const AnchorTraits& step) { return (step.log_fast + step.log_slow) / (2 * kTenth); }

// Position of a type: 0 for 16 and 32 bits, 1 for fp8, 2 for fp4.
double type_of(DType compute) { return compute == DType::fp4 ? 2 : compute == DType::fp8 ? 1 : 0; }

}  // namespace

double AnchoredStep::factor() const { return std::exp(log_factor); }

AnchorTraits traits_of(const Transformer& model, const Layout& layout, const StepPrediction& forecast) {
  AnchorTraits traits;
  const StepShares& shares = forecast.shares;
  const double total = shares.total_us();
  if (total > 0) {
    traits.communication = shares.exposed_communication_us() / total;
    traits.host = (shares.host_us + shares.fixed_us) / total;
    traits.compute = 1 - traits.communication - traits.host;
  }
  const Estimate& step = forecast.step;
  if (step.p10.value() > 0) {
    traits.log_fast = std::log(step.time / step.p10);
    traits.log_slow = std::log(step.p90 / step.time);
  }
  const Degrees& degrees = layout.degrees;
  const auto at = [](std::int64_t value, double unit) { return log2_of(static_cast<double>(value)) / unit; };
  const auto gpus = static_cast<double>(forecast.n_gpus);
  const double tokens = std::max(1.0, forecast.tokens_per_step);
  const double tokens_of_rank =
      static_cast<double>(layout.batch.micro_batch_sequences * layout.batch.seq_len_tokens) /
      static_cast<double>(std::max<std::int64_t>(1, degrees.tensor * degrees.context));
  // Units of distance for each trait: 16 times the GPUs, 4 times the tokens per rank or the work per token, 4
  // times the sequence length, one step of the type, and 2^1.5 times a degree (2 times for context
  // parallelism).
  traits.place = {log2_of(gpus) / 4,
                  log2_of(tokens_of_rank) / 2,
                  std::log2(std::max(1e-12, forecast.step.time.value() * gpus / tokens)) / 2,
                  at(layout.batch.seq_len_tokens, 2),
                  type_of(layout.layer.precision.compute),
                  at(degrees.tensor, 1.5),
                  at(degrees.pipeline, 1.5),
                  at(degrees.context, 1),
                  at(degrees.expert, 1.5)};
  traits.model = {static_cast<double>(model.hidden_size), static_cast<double>(model.n_layers),
                  static_cast<double>(model.n_heads),
                  model.moe ? static_cast<double>(model.moe->n_experts) : 0, traits.place[4]};
  return traits;
}

Anchor::Anchor(std::vector<AnchorTraits> traits, std::vector<double> errors)
    : traits_(std::move(traits)), errors_(std::move(errors)) {
  const std::size_t n = errors_.size();
  std::vector<double> of_steps(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j)
      of_steps[i * n + j] = covariance(traits_[i], traits_[j], distance(traits_[i], traits_[j]));
    of_steps[i * n + i] += square(kOfRun);
    in_their_bands_ =
        in_their_bands_ && -errors_[i] <= traits_[i].log_fast && errors_[i] <= traits_[i].log_slow;
  }
  std::vector<double> logs;
  for (const Unevenness& uneven : kUneven) {
    for (const bool shared : {false, true}) {
      Scale scale{.square = square(uneven.times),
                  .shared = shared ? square(kShared) : 0,
                  .solved = errors_,
                  .factor = of_steps};
      for (double& value : scale.factor) value = value * scale.square + scale.shared;
      cholesky(scale.factor, n);
      solve_lower(scale.factor, scale.solved);
      // Log of prior times likelihood, up to a constant common to all scales.
      double log = std::log(uneven.often * (shared ? kSharedOften : 1 - kSharedOften)) -
                   0.5 * dot(scale.solved, scale.solved);
      for (std::size_t i = 0; i < n; ++i) log -= std::log(scale.factor[i * n + i]);
      solve_upper(scale.factor, scale.solved);
      logs.push_back(log);
      scales_.push_back(std::move(scale));
    }
  }
  // Normalise relative to the largest one, so that exp() cannot underflow for all scales.
  const double most = *std::ranges::max_element(logs);
  double sum = 0;
  for (std::size_t s = 0; s < logs.size(); ++s) sum += scales_[s].weight = std::exp(logs[s] - most);
  for (Scale& scale : scales_) scale.weight /= sum;
}

Result<Anchor> Anchor::of(const StepModel& steps, std::span<const MeasuredTime> measured) {
  if (measured.empty()) return Error{"no measured step is given"};
  if (measured.size() > kMostSteps) {
    return Error{"too many measured steps to anchor on"}
        .found(fmt::format("{}", measured.size()))
        .expected(fmt::format("at most {}", kMostSteps))
        .advice("`stepcast calibrate iterations` makes a platform of them");
  }
  std::vector<AnchorTraits> traits;
  std::vector<double> errors;
  for (const MeasuredTime& step : measured) {
    Result<StepPrediction> forecast = steps.predict(step.model, step.layout);
    if (!forecast) {
      Error error = std::move(forecast).error();
      return Error{fmt::format("a measured step cannot be forecast: {}", error.message())};
    }
    const double times = step.step_time_ms * 1e3 / forecast->step.time.value();
    if (!(times >= 1 / kMostTimes && times <= kMostTimes)) {
      return Error{"a measured step does not belong to this job"}
          .found(fmt::format("{:g} ms, but the forecast is {:.1f} ms", step.step_time_ms,
                             forecast->step.time.value() * 1e-3))
          .expected("milliseconds, within a factor of 20 of the forecast")
          .advice("check its unit, layout and batch");
    }
    traits.push_back(traits_of(step.model, step.layout, *forecast));
    errors.push_back(std::log(times));
  }
  return Anchor{std::move(traits), std::move(errors)};
}

AnchoredStep Anchor::at(const AnchorTraits& question) const {
  const std::size_t n = errors_.size();
  std::vector<double> apart(n);
  for (std::size_t i = 0; i < n; ++i) apart[i] = distance(question, traits_[i]);
  // Prior variance of the step in question, including that of its own run.
  const double own = covariance(question, question, 0) + square(kOfRun);
  AnchoredStep said;
  double mean_squares = 0;  // averaged over the scales
  for (const Scale& scale : scales_) {
    AnchoredStep here;
    std::vector<double> with(n);
    for (std::size_t i = 0; i < n; ++i) {
      const AnchorTraits& there = traits_[i];
      const double solved = scale.solved[i] * scale.square;
      here.compute += square(kOfCompute) * there.compute * solved;
      here.communication += square(kOfWaiting) * there.communication * solved;
      here.host += square(kOfWaiting) * there.host * solved;
      with[i] = scale.square * covariance(question, there, apart[i]) + scale.shared;
      here.log_factor += with[i] * scale.solved[i];
    }
    solve_lower(scale.factor, with);
    const double variance = scale.square * own + scale.shared - dot(with, with);
    said.compute += scale.weight * here.compute;
    said.communication += scale.weight * here.communication;
    said.host += scale.weight * here.host;
    said.log_factor += scale.weight * here.log_factor;
    mean_squares += scale.weight * (std::max(0.0, variance) + square(here.log_factor));
  }
  said.alike = said.log_factor - said.compute * question.compute -
               said.communication * question.communication - said.host * question.host;
  said.log_sd = std::sqrt(std::max(0.0, mean_squares - square(said.log_factor)));
  // If every measured step is within its forecast band, the anchored band is never wider than the forecast's.
  const double without = log_sd_of(question);
  if (in_their_bands_ && without > 0) said.log_sd = std::min(said.log_sd, without);
  return said;
}

double Anchor::left(std::size_t i) const {
  double left = 0;
  for (const Scale& scale : scales_) left += scale.weight * scale.square * square(kOfRun) * scale.solved[i];
  return left;
}

StepAssumptions slowed(StepAssumptions a, double compute, double communication, double host) {
  for (double* factor : {&a.gemm_factor, &a.attention_factor, &a.memory_bound_factor}) *factor *= compute;
  a.communication_factor *= communication;
  for (double* time : {&a.host_factor, &a.host_launch_us, &a.compiled_host_launch_us, &a.step_fixed_us})
    *time *= host;
  return a;
}

Result<StepAssumptions> Anchor::assumptions(const StepModel& question, const Transformer& model,
                                            const Layout& layout) const {
  STEPCAST_ASSIGN(const StepPrediction before, question.predict(model, layout));
  const AnchoredStep said = at(traits_of(model, layout, before));
  StepAssumptions there = slowed(question.assumptions(), std::exp(said.alike + said.compute),
                                 std::exp(said.alike + said.communication), std::exp(said.alike + said.host));
  there.log_sd = said.log_sd;
  // Parts overlap, and their shares change with their factors. So the remaining difference is applied to all
  // parts equally until the step time matches.
  constexpr int kMostRounds = 3;
  constexpr double kNear = 1e-9;
  for (int round = 0; round < kMostRounds; ++round) {
    STEPCAST_ASSIGN(const StepPrediction now, question.with(there).predict(model, layout));
    const double rest = before.step.time.value() * said.factor() / now.step.time.value();
    if (std::abs(rest - 1) < kNear) break;
    there = slowed(there, rest, rest, rest);
  }
  return there;
}

}  // namespace stepcast

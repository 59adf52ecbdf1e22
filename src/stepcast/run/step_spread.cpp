#include "stepcast/run/step_spread.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace stepcast {
namespace {

// Above this mean number of pauses per step, their number is approximated by a normal distribution.
constexpr double kManyPauses = 400;

// Distribution of the step time relative to a step without jitter and pauses.
class Steps {
 public:
  Steps(double typical_s, const StepJitter& jitter, std::span<const RegularStop> stops)
      : sigma_(jitter.sigma), pause_(jitter.pause_s / typical_s) {
    for (const RegularStop& stop : stops) {
      const double share = std::min(kinds_[0].share, 1 / std::max(1.0, stop.every_steps));
      kinds_[0].share -= share;
      kinds_.push_back({share, stop.s / typical_s});
    }
    const double mean = jitter.pauses_per_s * typical_s;
    if (mean > kManyPauses) {
      shift_ = mean * pause_;
      sigma_ = std::hypot(sigma_, std::sqrt(mean) * pause_);
      chances_ = {1};
      return;
    }
    double chance = std::exp(-mean);
    for (int n = 0; n < mean + 10 * std::sqrt(mean) + 10; ++n) {
      chances_.push_back(chance);
      chance *= mean / (n + 1);
    }
  }

  // The relative step time with this share of steps below it, by bisection.
  [[nodiscard]] double quantile(double share) const {
    double low = shift_ - 10 * sigma_, high = shift_ + 10 * sigma_;
    high += pause_ * static_cast<double>(chances_.size()) + std::ranges::max(kinds_, {}, &Kind::stop).stop;
    constexpr int kHalvings = 60;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (share_below(middle) < share ? low : high) = middle;
    }
    return 1 + high;
  }

 private:
  // Steps followed by the same stop: their share of all steps, and the length of the stop relative to a step.
  struct Kind {
    double share = 1, stop = 0;
  };
  // Share of the steps that are longer than the base by less than `excess`; sums over numbers of pauses and kinds of stops.
  [[nodiscard]] double share_below(double excess) const {
    double share = 0, paused = shift_;
    for (const double chance : chances_) {
      for (const Kind& kind : kinds_)
        share +=
            kind.share * chance * std::erfc((paused + kind.stop - excess) / sigma_ / std::numbers::sqrt2) / 2;
      paused += pause_;
    }
    return share;
  }

  double sigma_, pause_, shift_ = 0;
  std::vector<double> chances_;  // [pauses in the step] probability
  std::vector<Kind> kinds_{{}};  // steps without a stop, then one kind per stop
};

}  // namespace

StepSpread step_spread(double typical_s, const StepJitter& jitter, std::span<const RegularStop> stops) {
  if (!(typical_s > 0) || !(jitter.sigma > 0)) return {typical_s, typical_s, typical_s};
  const double scale = typical_s / Steps{typical_s, jitter, {}}.quantile(0.5);
  const Steps steps{typical_s, jitter, stops};
  return {scale * steps.quantile(0.5), scale * steps.quantile(0.9), scale * steps.quantile(0.99)};
}

}  // namespace stepcast

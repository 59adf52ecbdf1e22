#include "stepcast/run/step_spread.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace stepcast {
namespace {

// From so many pauses in a step on, their number is taken as normal.
constexpr double kManyPauses = 400;

// Step over a step without jitter and pauses.
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
  struct Kind {
    double share = 1, stop = 0;  // of the steps; behind each, over a step
  };
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
  std::vector<double> chances_;  // [pauses in the step]
  std::vector<Kind> kinds_{{}};  // without a stop, then one of each
};

}  // namespace

StepSpread step_spread(double typical_s, const StepJitter& jitter, std::span<const RegularStop> stops) {
  if (!(typical_s > 0) || !(jitter.sigma > 0)) return {typical_s, typical_s, typical_s};
  const double scale = typical_s / Steps{typical_s, jitter, {}}.quantile(0.5);
  const Steps steps{typical_s, jitter, stops};
  return {scale * steps.quantile(0.5), scale * steps.quantile(0.9), scale * steps.quantile(0.99)};
}

}  // namespace stepcast

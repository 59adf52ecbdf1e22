#include "stepcast/run/step_spread.h"

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
  Steps(double typical_s, const StepJitter& jitter)
      : sigma_(jitter.sigma), pause_(jitter.pause_s / typical_s) {
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
    const double most = shift_ + 10 * sigma_ + pause_ * static_cast<double>(chances_.size());
    double low = shift_ - 10 * sigma_, high = most;
    constexpr int kHalvings = 60;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (share_below(middle) < share ? low : high) = middle;
    }
    return 1 + high;
  }

 private:
  [[nodiscard]] double share_below(double excess) const {
    double share = 0, paused = shift_;
    for (const double chance : chances_) {
      share += chance * std::erfc((paused - excess) / sigma_ / std::numbers::sqrt2) / 2;
      paused += pause_;
    }
    return share;
  }

  double sigma_, pause_, shift_ = 0;
  std::vector<double> chances_;  // [pauses in the step]
};

}  // namespace

StepSpread step_spread(double typical_s, const StepJitter& jitter) {
  if (!(typical_s > 0) || !(jitter.sigma > 0)) return {typical_s, typical_s, typical_s};
  const Steps steps{typical_s, jitter};
  const double scale = typical_s / steps.quantile(0.5);
  return {typical_s, scale * steps.quantile(0.9), scale * steps.quantile(0.99)};
}

}  // namespace stepcast

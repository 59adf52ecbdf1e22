#include "stepcast/plan/layout_jitter.h"

#include <algorithm>
#include <cmath>

#include "stepcast/base/statistics.h"
#include "stepcast/base/stop.h"

namespace stepcast {
namespace {

// SplitMix64 generator. Each scenario has its own stream, equal on all machines.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  // Uniform in (0, 1).
  double uniform() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    z ^= z >> 31U;
    return (static_cast<double>(z >> 11U) + 0.5) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

// The standard normal quantile with upper tail probability `tail`, by Acklam's rational approximation (relative error below
// 1.2e-9).
double exceeded_with(double tail) {
  constexpr double kA[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                           1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double kB[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                           6.680131188771972e+01, -1.328068155288572e+01};
  constexpr double kC[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                           -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double kD[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                           3.754408661907416e+00};
  constexpr double kOuter = 0.02425;
  const auto outer = [&](double p) {
    const double q = std::sqrt(-2 * std::log(p));
    return (((((kC[0] * q + kC[1]) * q + kC[2]) * q + kC[3]) * q + kC[4]) * q + kC[5]) /
           ((((kD[0] * q + kD[1]) * q + kD[2]) * q + kD[3]) * q + 1);
  };
  if (tail < kOuter) return -outer(tail);
  if (tail > 1 - kOuter) return outer(1 - tail);
  const double q = 0.5 - tail, r = q * q;
  return (((((kA[0] * r + kA[1]) * r + kA[2]) * r + kA[3]) * r + kA[4]) * r + kA[5]) * q /
         (((((kB[0] * r + kB[1]) * r + kB[2]) * r + kB[3]) * r + kB[4]) * r + 1);
}

// Factor of the slowest of `n` GPUs. P(max of n normal deviates < x) = P(one deviate < x)^n, so one draw is enough.
double slowest_of(double n, double sigma, Random& random) {
  const double tail = -std::expm1(std::log(random.uniform()) / n);
  return std::exp(sigma * exceeded_with(std::max(tail, 1e-300)));
}

// Simulates one layout at a time and reuses its buffers.
class Shaker {
 public:
  Shaker(const Jitter& jitter, const JitterOptions& options) : jitter_(jitter), options_(options) {}

  // Step times over all scenarios. Groups that wait for each other in every layer take one draw: the slowest of the group.
  JitteredLayout shake(const PricedStep& step, const Layout& layout) {
    const Degrees& d = layout.degrees;
    const bool waits_in_every_layer = step.schedule.gather == WeightGather::every_forward;
    const double replicas = static_cast<double>(d.data);
    double together = static_cast<double>(std::max(d.tensor * d.context, d.expert * d.expert_tensor));
    // With a single stage, replicas also wait only for the slowest GPU of all: a step is monotonic in a factor on all of its work.
    const bool as_one = waits_in_every_layer || d.pipeline == 1;
    if (as_one) together = static_cast<double>(d.tensor * d.context) * replicas;
    // Number of independent groups of replicas to draw.
    const std::int64_t drawn =
        as_one
            ? 1
            : std::max<std::int64_t>(1, d.tensor * d.context * d.data / static_cast<std::int64_t>(together));
    shaken_ = step;
    std::vector<double> all;
    for (std::size_t i = 0; i < options_.scenarios && !is_stop_requested(); ++i) {
      // An own stream per scenario, so that results do not depend on their order.
      Random random{options_.seed * 0x2545f4914f6cdd1dULL + i};
      const double network = std::exp(jitter_.network * exceeded_with(random.uniform()));
      double slowest_us = 0;
      for (std::int64_t r = 0; r < drawn; ++r) {
        factors_.clear();
        for (std::uint32_t s = 0; s < step.schedule.shape.stages; ++s)
          factors_.push_back(slowest_of(together, jitter_.gpu, random));
        slowest_us = std::max(slowest_us, step_us(step, network));
      }
      all.push_back(slowest_us * 1e-3);
    }
    // The reference for the slowdown: all GPUs at nominal speed.
    factors_.assign(step.schedule.shape.stages, 1);
    const double plain_ms = step_us(step, 1) * 1e-3;
    JitteredLayout result;
    for (const double ms : all) result.mean_ms += ms / static_cast<double>(all.size());
    std::ranges::sort(all);
    result.p50_ms = nearest_rank_quantile(all, 0.5);
    result.p90_ms = nearest_rank_quantile(all, 0.9);
    result.slowdown = result.mean_ms / plain_ms;
    return result;
  }

 private:
  // Step time with each stage slowed by `factors_` instead of the usual factor of the slowest GPU of the job.
  double step_us(const PricedStep& step, double network) {
    const StepSchedule& from = step.schedule;
    StepSchedule& to = shaken_.schedule;
    for (std::uint32_t c = 0; c < from.chunks.size(); ++c) {
      const std::uint32_t stage = stage_of_chunk(from.shape.schedule, from.shape.stages, c);
      // The price already includes the usual slowest GPU, which the drawn factor replaces.
      const double factor = factors_[stage] / step.slowest_gpu_factor;
      for (std::size_t u = 0; u < from.chunks[c].units.size(); ++u) {
        const ScheduleUnit& unit = from.chunks[c].units[u];
        to.chunks[c].units[u] = {unit.forward_us * factor, unit.backward_us * factor,
                                 unit.weight_gradient_us * factor, unit.gather_us * network,
                                 unit.reduce_us * network};
      }
    }
    to.boundary_us = from.boundary_us * network;
    to.boundary_wrap_us = from.boundary_wrap_us * network;
    to.embedding_reduce_us = from.embedding_reduce_us * network;
    for (std::size_t s = 0; s < from.reduce_at_end_us.size(); ++s) {
      to.reduce_at_end_us[s] = from.reduce_at_end_us[s] * network;
      to.gather_after_step_us[s] = from.gather_after_step_us[s] * network;
    }
    return evaluator_.evaluate(shaken_.schedule).step_us;
  }

  ScheduleEvaluator evaluator_;
  const Jitter& jitter_;
  const JitterOptions& options_;
  PricedStep shaken_;
  std::vector<double> factors_;  // [stage]
};

}  // namespace

Result<std::vector<JitteredLayout>> jitter_layouts(const LayoutRanking& ranking,
                                                   const LayoutPrototypes& prototypes, const StepModel& steps,
                                                   const Jitter& jitter, const JitterOptions& options) {
  Shaker shaker{jitter, options};
  std::vector<JitteredLayout> all;
  for (std::size_t i = 0; i < std::min(kMostJittered, ranking.layouts.size()); ++i) {
    const Layout& layout = ranking.layouts[i].layout;
    STEPCAST_ASSIGN(const PricedStep step, steps.price(prototypes.model(), layout));
    all.push_back(shaker.shake(step, layout));
    STEPCAST_TRY(not_stopped());
    all.back().of = i;
  }
  return all;
}

std::size_t steadiest(const LayoutRanking& ranking, const std::vector<JitteredLayout>& jittered) {
  const JitteredLayout* best = nullptr;
  for (const JitteredLayout& one : jittered) {
    const RankedLayout& layout = ranking.layouts[one.of];
    if (!layout.alike || layout.memory.verdict == MemoryVerdict::tight) continue;
    if (best == nullptr || one.p90_ms < best->p90_ms) best = &one;
  }
  return best == nullptr ? 0 : best->of;
}

}  // namespace stepcast

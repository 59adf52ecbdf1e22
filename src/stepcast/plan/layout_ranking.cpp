#include "stepcast/plan/layout_ranking.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace stepcast {
namespace {

// What the structure of the forecast leaves out of one layout and not of another of the same model, as a share of the
// step: half of the band. Assumed.
constexpr double kOwnError = 0.02;

double half_band(const StepPrediction& p) {
  return (p.step.p90.value() - p.step.p10.value()) / 2 / std::max(1e-9, p.step.time.value());
}

}  // namespace

double uncertain_difference_us(const StepPrediction& a, const StepPrediction& b) {
  double squares = 0;
  const auto part = [&](double x, double y) { squares += (x - y) * (x - y); };
  for (std::size_t i = 0; i < a.shares.class_us.size(); ++i) part(a.shares.class_us[i], b.shares.class_us[i]);
  for (std::size_t i = 0; i < a.shares.exposed_us.size(); ++i)
    part(a.shares.exposed_us[i], b.shares.exposed_us[i]);
  part(a.shares.host_us, b.shares.host_us);
  part(a.shares.bubble_us, b.shares.bubble_us);
  part(a.shares.optimizer_us, b.shares.optimizer_us);
  const double half = std::max(half_band(a), half_band(b));
  return std::hypot(half * std::sqrt(squares), kOwnError * a.step.time.value());
}

std::size_t choose(const std::vector<RankedLayout>& layouts, const LayoutPoint& from) {
  std::size_t best = 0;
  const auto rank = [&](std::size_t i) {
    const RankedLayout& l = layouts[i];
    return std::tuple{l.memory.verdict == MemoryVerdict::tight, n_changes(from, l.point), i};
  };
  for (std::size_t i = 1; i < layouts.size(); ++i) {
    if (layouts[i].alike && rank(i) < rank(best)) best = i;
  }
  return best;
}

Result<LayoutRanking> rank_layouts(const std::vector<PricedLayout>& priced,
                                   const LayoutPrototypes& prototypes, StepModel& steps, Bytes memory,
                                   std::size_t most) {
  LayoutRanking ranking;
  // Further away than this nothing is alike, whatever the bands: shares err by less than the whole.
  for (const PricedLayout& layout : priced) {
    const std::size_t n = ranking.layouts.size();
    if (n >= kMostRanked) {
      ranking.more_alike = ranking.layouts.back().alike;
      break;
    }
    RankedLayout one;
    one.point = layout.point;
    one.layout = prototypes.layout(layout.point);
    STEPCAST_ASSIGN(const PricedStep step, steps.price(prototypes.model(), one.layout));
    one.step = steps.predict(step, one.layout);
    STEPCAST_ASSIGN(one.memory, memory_forecast(step.work, prototypes.model(), one.layout, memory));
    if (n == 0) {
      one.alike = true;
    } else {
      const RankedLayout& first = ranking.layouts.front();
      one.behind_us = one.step.step.time.value() - first.step.step.time.value();
      one.uncertain_us = uncertain_difference_us(first.step, one.step);
      one.alike = one.behind_us <= one.uncertain_us;
      constexpr double kHopeless = 0.3;
      if (n >= most && one.behind_us > kHopeless * first.step.step.time.value()) break;
    }
    ranking.n_alike += one.alike ? 1 : 0;
    ranking.layouts.push_back(std::move(one));
  }
  if (!ranking.layouts.empty()) ranking.chosen = choose(ranking.layouts, LayoutPoint{});
  return ranking;
}

}  // namespace stepcast

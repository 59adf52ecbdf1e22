#include "stepcast/plan/layout_ranking.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stepcast/base/stop.h"

namespace stepcast {
namespace {

// What the structure of the forecast leaves out of one layout and not of another of the same model, as a share of the
// step: half of the band, so wide that it holds for four of five pairs of published steps that differ in their layout
// alone. With experts it is wider: the few pairs there are lie further apart.
constexpr double kOwnError = 0.07, kOwnErrorOfExperts = 0.2;
// Layouts that are no more than this behind the fastest give way to nothing but a plainer one. Assumed.
constexpr double kPlainnessIsWorth = 0.02;

double half_band(const StepPrediction& p) {
  return (p.step.p90.value() - p.step.p10.value()) / 2 / std::max(1e-9, p.step.time.value());
}

}  // namespace

double uncertain_difference_us(const StepPrediction& a, const StepPrediction& b, bool experts) {
  double squares = 0;
  const auto part = [&](double x, double y) { squares += (x - y) * (x - y); };
  for (std::size_t i = 0; i < a.shares.class_us.size(); ++i) part(a.shares.class_us[i], b.shares.class_us[i]);
  for (std::size_t i = 0; i < a.shares.exposed_us.size(); ++i)
    part(a.shares.exposed_us[i], b.shares.exposed_us[i]);
  part(a.shares.host_us, b.shares.host_us);
  part(a.shares.bubble_us, b.shares.bubble_us);
  part(a.shares.optimizer_us, b.shares.optimizer_us);
  const double half = std::max(half_band(a), half_band(b));
  return std::hypot(half * std::sqrt(squares),
                    (experts ? kOwnErrorOfExperts : kOwnError) * a.step.time.value());
}

std::size_t choose(const std::vector<RankedLayout>& layouts, const LayoutPoint& from) {
  const auto safe = [](const RankedLayout& l) { return l.alike && l.memory.verdict != MemoryVerdict::tight; };
  const auto found = std::ranges::find_if(layouts, safe);
  if (found == layouts.end()) return 0;
  auto best = static_cast<std::size_t>(found - layouts.begin());
  const double most_us = found->step.step.time.value() * (1 + kPlainnessIsWorth);
  for (std::size_t i = best + 1; i < layouts.size(); ++i) {
    const RankedLayout& l = layouts[i];
    if (!safe(l) || l.step.step.time.value() > most_us) continue;
    if (n_changes(from, l.point) < n_changes(from, layouts[best].point)) best = i;
  }
  return best;
}

Result<PlanObjective> parse_objective(const std::string& word) {
  if (word == "time" || word == "step-time") return PlanObjective::step_time;
  if (word == "cost" || word == "money") return PlanObjective::cost;
  if (word == "energy" || word == "carbon") return PlanObjective::energy;
  if (word == "memory") return PlanObjective::memory;
  return Error::at("", "--objective")
      .found("`" + word.substr(0, 40) + "`")
      .expected("time, money (cost), energy, carbon or memory");
}

std::size_t with_most_memory(const std::vector<RankedLayout>& layouts) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < layouts.size(); ++i)
    if (layouts[i].alike && layouts[i].memory.margin() > layouts[best].memory.margin()) best = i;
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
    STEPCAST_TRY(not_stopped());
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
      one.uncertain_us = uncertain_difference_us(first.step, one.step, prototypes.model().moe.has_value());
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

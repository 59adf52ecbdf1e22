#include "stepcast/plan/layout_ranking.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "stepcast/base/stop.h"

namespace stepcast {
namespace {

// Structural uncertainty of the difference between two layouts of one model, as a share of the step (half-width of the band).
// The value for dense models covers four of five pairs of published steps that differ only in their layout. With experts it is
// larger, because the few published pairs differ more. For an unmeasured kind it is the error of the forecasts of such kinds
// before their first measurement (step_prediction.cpp).
constexpr double kOwnError = 0.07, kOwnErrorOfExperts = 0.2, kOwnErrorOfUnmeasured = 0.28;
// A layout this much slower than the fastest, as a share, may be preferred if it is simpler. Assumed.
constexpr double kPlainnessIsWorth = 0.002;

// Half-width of the p10-p90 band as a share of the step time.
double half_band(const StepPrediction& p) {
  return (p.step.p90.value() - p.step.p10.value()) / 2 / std::max(1e-9, p.step.time.value());
}

std::string_view unmeasured_kind_of(const LayoutPoint& point, const LayoutPrototypes& prototypes) {
  return unmeasured_kind(prototypes.model().moe.has_value(), prototypes.framework(), point.sharding.kind,
                         point.expert, point.schedule);
}

}  // namespace

double uncertain_difference_us(const StepPrediction& a, const StepPrediction& b, DifferenceOf of) {
  double squares = 0;
  // (1) Errors of parts that differ, scaled by the forecast band; (2) the structural share. See layout_ranking.h.
  const auto part = [&](double x, double y) { squares += (x - y) * (x - y); };
  for (std::size_t i = 0; i < a.shares.class_us.size(); ++i) part(a.shares.class_us[i], b.shares.class_us[i]);
  for (std::size_t i = 0; i < a.shares.exposed_us.size(); ++i)
    part(a.shares.exposed_us[i], b.shares.exposed_us[i]);
  part(a.shares.host_us, b.shares.host_us);
  part(a.shares.bubble_us, b.shares.bubble_us);
  part(a.shares.optimizer_us, b.shares.optimizer_us);
  const double half = std::max(half_band(a), half_band(b));
  const double own = of == DifferenceOf::dense     ? kOwnError
                     : of == DifferenceOf::experts ? kOwnErrorOfExperts
                                                   : kOwnErrorOfUnmeasured;
  return std::hypot(half * std::sqrt(squares), own * a.step.time.value());
}

std::size_t choose(const std::vector<RankedLayout>& layouts, const LayoutPoint& from) {
  const auto is_safe = [](const RankedLayout& l) {
    return l.alike && l.memory.verdict != MemoryVerdict::tight;
  };
  const auto is_measured = [&](const RankedLayout& l) { return is_safe(l) && l.unmeasured.empty(); };
  auto found = std::ranges::find_if(layouts, is_measured);
  if (found == layouts.end()) found = std::ranges::find_if(layouts, is_safe);
  if (found == layouts.end()) return 0;
  const bool needs_measured = found->unmeasured.empty();
  auto best = static_cast<std::size_t>(found - layouts.begin());
  const double most_us = found->step.step.time.value() * (1 + kPlainnessIsWorth);
  for (std::size_t i = best + 1; i < layouts.size(); ++i) {
    const RankedLayout& l = layouts[i];
    if (!(needs_measured ? is_measured(l) : is_safe(l)) || l.step.step.time.value() > most_us) continue;
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

Result<RankedLayout> look_at(const std::vector<PricedLayout>& priced, std::size_t rank,
                             const LayoutPrototypes& prototypes, const StepModel& steps, Bytes memory) {
  RankedLayout one;
  one.rank = rank;
  one.point = priced[rank].point;
  one.layout = prototypes.layout(one.point);
  one.unmeasured = unmeasured_kind_of(one.point, prototypes);
  STEPCAST_ASSIGN(const PricedStep step, steps.price(prototypes.model(), one.layout));
  one.step = steps.predict(step, one.layout);
  STEPCAST_ASSIGN(one.memory, memory_forecast(step.work, prototypes.model(), one.layout, memory));
  return one;
}

Result<LayoutRanking> rank_layouts(const std::vector<PricedLayout>& priced,
                                   const LayoutPrototypes& prototypes, const StepModel& steps, Bytes memory,
                                   std::size_t most) {
  LayoutRanking ranking;
  if (priced.empty()) return ranking;
  const bool experts = prototypes.model().moe.has_value();
  const auto half_of_band = [&](const RankedLayout& a, const RankedLayout& b) {
    const bool is_new = !a.unmeasured.empty() || !b.unmeasured.empty();
    return uncertain_difference_us(a.step, b.step,
                                   is_new    ? DifferenceOf::unmeasured
                                   : experts ? DifferenceOf::experts
                                             : DifferenceOf::dense);
  };
  const auto us = [](const RankedLayout& l) { return l.step.step.time.value(); };
  // All layouts are compared with the fastest one. If its kind is unmeasured, the fastest of a measured kind is used instead,
  // unless that is slower by more than the band.
  STEPCAST_ASSIGN(const RankedLayout fastest, look_at(priced, 0, prototypes, steps, memory));
  RankedLayout reference = fastest;
  const auto measured = std::ranges::find_if(
      priced, [&](const PricedLayout& l) { return unmeasured_kind_of(l.point, prototypes).empty(); });
  if (measured != priced.end() && measured != priced.begin()) {
    STEPCAST_ASSIGN(RankedLayout usual, look_at(priced, static_cast<std::size_t>(measured - priced.begin()),
                                                prototypes, steps, memory));
    if (us(usual) - us(fastest) <= half_of_band(usual, fastest)) reference = std::move(usual);
  }
  // Layouts more than kHopeless slower are not tied whatever their bands, so the loop ends there.
  for (std::size_t rank = 0; rank < priced.size(); ++rank) {
    const std::size_t n = ranking.layouts.size();
    if (n >= kMostRanked && rank > reference.rank) {
      ranking.more_alike = ranking.layouts.back().alike;
      break;
    }
    STEPCAST_TRY(not_stopped());
    STEPCAST_ASSIGN(RankedLayout one, look_at(priced, rank, prototypes, steps, memory));
    one.behind_us = us(one) - us(fastest);
    one.uncertain_us = rank == 0 ? 0 : half_of_band(fastest, one);
    one.alike = rank == reference.rank || std::abs(us(one) - us(reference)) <= half_of_band(reference, one);
    constexpr double kHopeless = 0.3;
    if (n >= most && us(one) - us(reference) > kHopeless * us(reference)) break;
    ranking.n_alike += one.alike ? 1 : 0;
    ranking.layouts.push_back(std::move(one));
  }
  ranking.chosen = choose(ranking.layouts, LayoutPoint{});
  return ranking;
}

}  // namespace stepcast

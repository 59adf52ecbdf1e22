#include "stepcast/cost/fair_shares.h"

#include <algorithm>
#include <limits>

namespace stepcast {

std::vector<double> fair_rates(std::span<const FlowClass> classes, std::span<const double> capacities) {
  std::vector<double> rates(classes.size(), 0.0);
  std::vector<bool> grows(classes.size(), true);
  // Number of flows of a class on a link.
  const auto passes = [](const FlowClass& flows, std::size_t link) {
    double n = 0;
    for (const FlowClass::Passage& p : flows.passes) n += p.link == link ? p.flows : 0;
    return n;
  };
  // Every round fixes the rate of at least one class.
  for (std::size_t round = 0; round < classes.size(); ++round) {
    double level = std::numeric_limits<double>::infinity();  // rate at which the next class stops
    std::vector<double> level_of(capacities.size(), level);  // rate at which each link is full
    for (std::size_t link = 0; link < capacities.size(); ++link) {
      double taken = 0, growing = 0;
      for (std::size_t c = 0; c < classes.size(); ++c) {
        const double n = passes(classes[c], link);
        taken += grows[c] ? 0 : n * rates[c];
        growing += grows[c] ? n : 0;
      }
      if (growing > 0) level_of[link] = std::max(0.0, capacities[link] - taken) / growing;
      level = std::min(level, level_of[link]);
    }
    for (std::size_t c = 0; c < classes.size(); ++c) {
      if (grows[c]) level = std::min(level, classes[c].demand);
    }
    for (std::size_t c = 0; c < classes.size(); ++c) {
      if (!grows[c]) continue;
      rates[c] = level;
      const bool held = std::ranges::any_of(classes[c].passes, [&](const FlowClass::Passage& p) {
        return p.flows > 0 && level_of[p.link] <= level;
      });
      grows[c] = !held && level < classes[c].demand;
    }
  }
  return rates;
}

}  // namespace stepcast

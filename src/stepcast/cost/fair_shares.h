// Rates of flows that share links, max-min fair: no flow can get more without another one, that has no more than it,
// getting less. What transports with fair queues and equal round trips come to.
//
//   // Two flows that want all of one link get half of it each.
//   fair_rates({{.demand = 1, .passes = {{0, 1}}}, {.demand = 1, .passes = {{0, 1}}}}, {1.0})   // {0.5, 0.5}
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace stepcast {

// Flows that are alike: each wants `demand`, and so many of them pass every link.
struct FlowClass {
  struct Passage {
    std::size_t link = 0;  // position among the capacities
    double flows = 1;
  };
  double demand = 1;
  std::vector<Passage> passes;
};

// What each flow of every class gets, in the unit of demands and capacities. Links are filled together until one is full,
// its flows keep what they have then (Bertsekas and Gallager, Data Networks, 6.5.2).
[[nodiscard]] std::vector<double> fair_rates(std::span<const FlowClass> classes,
                                             std::span<const double> capacities);

}  // namespace stepcast

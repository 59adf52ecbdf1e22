// Max-min fair rates of flows that share links: no flow can get more unless a flow with no higher rate gets
// less. Transports with fair queues and equal round trips converge to these rates.
//
//   // Two flows that each want a whole link get half of the link each.
//   fair_rates({{.demand = 1, .passes = {{0, 1}}}, {.demand = 1, .passes = {{0, 1}}}}, {1.0})   // {0.5, 0.5}
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace stepcast {

// A class of equal flows: the demand of each flow, and the number of its flows on every link.
struct FlowClass {
  struct Passage {
    std::size_t link = 0;  // index into the capacities
    double flows = 1;      // flows of the class on this link
  };
  double demand = 1;  // upper limit of the rate of a flow
  std::vector<Passage> passes;
};

// The rate of a flow of each class, in the unit of demands and capacities. Progressive filling: all rates
// grow together until a link is full; then its flows keep their rate (Bertsekas and Gallager, Data Networks,
// 6.5.2). O(classes^2 links).
[[nodiscard]] std::vector<double> fair_rates(std::span<const FlowClass> classes,
                                             std::span<const double> capacities);

}  // namespace stepcast

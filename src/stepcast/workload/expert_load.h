// How tokens spread over the experts of a layer, and what the busiest rank gets.
//
//   STEPCAST_ASSIGN(const ExpertLoad load, parse_expert_load("power-law:1.2"));
//   busiest_over_mean(load, 128, 8, 4096)      // 128 experts on 8 ranks: 1.9 times the mean of the ranks
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

struct ExpertLoad {
  // Of the density of loads, x^-exponent between one token and 0.8 of all; 0: every expert has as many.
  double power_law = 0;
  // Measured: visits of every expert, in the order of the experts. Not empty: the exponent does not count.
  std::vector<double> visits;

  [[nodiscard]] bool balanced() const { return power_law == 0 && visits.empty(); }
  friend bool operator==(const ExpertLoad&, const ExpertLoad&) = default;
};

// "balanced", "power-law:EXPONENT", or the visits of every expert: "120,98,310,...".
[[nodiscard]] Result<ExpertLoad> parse_expert_load(std::string_view text);

// Visits to the experts of the busiest of `ranks` over those of the mean rank. Ranks hold n_experts / ranks experts in
// their order. Under a power law: the geometric mean over 64 draws, the same ones every time.
[[nodiscard]] double busiest_over_mean(const ExpertLoad& load, std::int64_t n_experts, std::int64_t ranks,
                                       double tokens);

}  // namespace stepcast

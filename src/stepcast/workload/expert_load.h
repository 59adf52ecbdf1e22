// How tokens spread over the experts of a layer, and what the busiest rank gets.
//
//   STEPCAST_ASSIGN(const ExpertLoad load, parse_expert_load("power-law:1.2"));
//   busiest_over_mean(load, 128, 8, 4096)      // 128 experts on 8 ranks: 1.9 times the mean of the ranks
//
//   // expert,visits      a file of measured loads: one line per expert
//   // 0,81234
//   STEPCAST_ASSIGN(const ExpertLoad measured, parse_expert_load_file(text, "loads.csv"));
//   STEPCAST_TRY(check(measured, 128, 8));
#pragma once

#include <cstdint>
#include <optional>
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

// A file of measured loads: a line per expert with its load, or with its number (from 0) and its load; commas or blanks
// between them; a first line of words is a header, lines that begin with # are comments. `name` stands for it in errors,
// which name the line.
[[nodiscard]] Result<ExpertLoad> parse_expert_load_file(std::string_view text, std::string_view name);

// Whether measured loads can be those of such a layer: one per expert; their sum is 1 or 100 (shares), the number of
// experts (multiples of the mean), or, of visits, a multiple of the experts that every token visits; and no expert has
// more than one visit of every token. Other loads always can.
[[nodiscard]] Status check(const ExpertLoad& load, std::int64_t n_experts, std::int64_t experts_per_token);

// Visits to the experts of the busiest of `ranks` over those of the mean rank. Ranks hold n_experts / ranks experts in
// their order. Under a power law: the geometric mean over 64 draws, the same ones every time. `capacity`: no expert keeps
// more than so many times the mean of the experts.
[[nodiscard]] double busiest_over_mean(const ExpertLoad& load, std::int64_t n_experts, std::int64_t ranks,
                                       double tokens, std::optional<double> capacity = std::nullopt);

}  // namespace stepcast

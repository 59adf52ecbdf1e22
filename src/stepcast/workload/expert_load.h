// The spread of tokens over the experts of a layer, and the load of the busiest rank.
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

// Balanced by default; a power law; or measured visits.
struct ExpertLoad {
  // Exponent of the density of loads, x^-exponent between one token and 0.8 of all tokens; 0: balanced.
  double power_law = 0;
  // Measured visits per expert, in the order of the experts. If not empty, the exponent is ignored.
  std::vector<double> visits;

  [[nodiscard]] bool balanced() const { return power_law == 0 && visits.empty(); }
  friend bool operator==(const ExpertLoad&, const ExpertLoad&) = default;
};

// Parses "balanced", "power-law:EXPONENT", or the visits of every expert: "120,98,310,...". Errors: an
// exponent outside of (0, 4], fewer than two loads, a sum of 0.
[[nodiscard]] Result<ExpertLoad> parse_expert_load(std::string_view text);

// Parses a file of measured loads: one line per expert with its load, or with its number (from 0) and its
// load, separated by commas or blanks. A first line of words is a header; lines that begin with # are
// comments. Errors name `name` and the line.
[[nodiscard]] Result<ExpertLoad> parse_expert_load_file(std::string_view text, std::string_view name);

// Checks measured loads against a layer: one load per expert; a sum of 1 or 100 (shares), of the number of
// experts (multiples of the mean), or, for visits, a multiple of the experts per token; and no expert with
// more than one visit per token. Other loads are always valid.
[[nodiscard]] Status check(const ExpertLoad& load, std::int64_t n_experts, std::int64_t experts_per_token);

// Visits to the experts of the busiest of `ranks` ranks over the mean rank. A rank has n_experts / ranks
// consecutive experts. For a power law: the geometric mean over 64 draws, the same ones in every call.
// `capacity`: limit per expert, as a multiple of the mean of the experts.
[[nodiscard]] double busiest_over_mean(const ExpertLoad& load, std::int64_t n_experts, std::int64_t ranks,
                                       double tokens, std::optional<double> capacity = std::nullopt);

}  // namespace stepcast

#include "stepcast/workload/expert_load.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace stepcast {
namespace {

// Draws of a power law: their mean moves by about 1 % with twice as many.
constexpr int kDraws = 64;
// The most tokens that one expert draws, as a share of all (as in the measurements of uneven layers).
constexpr double kMostShare = 0.8;

// Numbers in (0, 1), always the same ones (splitmix64).
class Draws {
 public:
  double next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    z ^= z >> 31U;
    return (static_cast<double>(z >> 11U) + 0.5) * 0x1.0p-53;
  }

 private:
  std::uint64_t state_ = 7;
};

double busiest_of(const std::vector<double>& visits, std::size_t ranks) {
  const std::size_t local = std::max<std::size_t>(1, visits.size() / ranks);
  double sum = 0, busiest = 0;
  for (std::size_t first = 0; first < visits.size(); first += local) {
    double here = 0;
    for (std::size_t i = first; i < std::min(first + local, visits.size()); ++i) here += visits[i];
    sum += here;
    busiest = std::max(busiest, here);
  }
  return sum > 0 ? busiest / sum * static_cast<double>(visits.size()) / static_cast<double>(local) : 1;
}

Result<double> number_in(std::string_view text, std::string_view whole) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value < 0) {
    return Error::at("", "expert_load")
        .found(fmt::format("`{}`", whole))
        .expected("balanced, power-law:EXPONENT, or the visits of every expert: 120,98,310,...");
  }
  return value;
}

}  // namespace

Result<ExpertLoad> parse_expert_load(std::string_view text) {
  ExpertLoad load;
  if (text == "balanced") return load;
  constexpr std::string_view kPowerLaw = "power-law:";
  if (text.starts_with(kPowerLaw)) {
    STEPCAST_ASSIGN(load.power_law, number_in(text.substr(kPowerLaw.size()), text));
    if (!(load.power_law > 0 && load.power_law <= 4)) {
      return Error::at("", "expert_load")
          .found(fmt::format("`{}`", text))
          .expected("an exponent above 0, at most 4");
    }
    return load;
  }
  double sum = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    STEPCAST_ASSIGN(const double visits, number_in(text.substr(begin, end - begin), text));
    load.visits.push_back(visits);
    sum += visits;
    begin = end + 1;
  }
  if (!(sum > 0) || load.visits.size() < 2) {
    return Error::at("", "expert_load")
        .found(fmt::format("{} loads that sum to {:g}", load.visits.size(), sum))
        .expected("one load per expert, with a sum above 0");
  }
  return load;
}

double busiest_over_mean(const ExpertLoad& load, std::int64_t n_experts, std::int64_t ranks, double tokens) {
  const auto experts = static_cast<std::size_t>(std::max<std::int64_t>(1, n_experts));
  const auto n_ranks = static_cast<std::size_t>(std::clamp<std::int64_t>(ranks, 1, n_experts));
  if (n_ranks == 1) return 1;
  if (!load.visits.empty()) return busiest_of(load.visits, n_ranks);
  if (load.power_law == 0) return 1;
  const double most = std::max(2.0, kMostShare * tokens);
  // x = ((most^q - 1) u + 1)^(1/q) with q = 1 - exponent, and most^u in its limit of exponent 1.
  const double q = 1 - load.power_law;
  Draws draws;
  std::vector<double> visits(experts);
  double sum = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    for (double& x : visits) {
      const double u = draws.next();
      x = std::abs(q) < 1e-9 ? std::pow(most, u) : std::pow((std::pow(most, q) - 1) * u + 1, 1 / q);
    }
    sum += std::log(busiest_of(visits, n_ranks));
  }
  return std::exp(sum / kDraws);
}

}  // namespace stepcast

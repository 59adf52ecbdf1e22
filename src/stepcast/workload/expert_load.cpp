#include "stepcast/workload/expert_load.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "stepcast/base/scan.h"

namespace stepcast {
namespace {

// Number of draws of a power law: twice as many change the mean by about 1 %.
constexpr int kDraws = 64;
// Largest share of all tokens that one expert draws (the same as in the measurements of uneven layers).
constexpr double kMostShare = 0.8;

// Deterministic numbers in (0, 1) (splitmix64).
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

// Load of the busiest rank over the mean of all visits, before the capacity is applied.
double busiest_of(const std::vector<double>& visits, std::size_t ranks, std::optional<double> capacity) {
  const std::size_t local = std::max<std::size_t>(1, visits.size() / ranks);
  double sum = 0, busiest = 0;
  for (const double x : visits) sum += x;
  if (!(sum > 0)) return 1;
  const double mean = sum / static_cast<double>(visits.size());
  const double most = capacity ? *capacity * mean : sum;
  for (std::size_t first = 0; first < visits.size(); first += local) {
    double here = 0;
    for (std::size_t i = first; i < std::min(first + local, visits.size()); ++i)
      here += std::min(visits[i], most);
    busiest = std::max(busiest, here);
  }
  return busiest / (mean * static_cast<double>(local));
}

// Relative tolerance of sums: shares are written with two or three digits.
constexpr double kRounding = 0.01;

// The words of a line, separated by blanks, commas or semicolons.
std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBetween = " \t\r,;";
  std::vector<std::string_view> words;
  for (std::size_t begin = line.find_first_not_of(kBetween); begin != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBetween, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kBetween, end);
  }
  return words;
}

// A finite number of at least 0; none for other text.
std::optional<double> load_in(std::string_view text) {
  const std::optional<double> value = scan<double>(text);
  return value && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
}

// The same, with an error that quotes the whole text.
Result<double> number_in(std::string_view text, std::string_view whole) {
  if (const std::optional<double> value = load_in(text)) return *value;
  return Error::at("", "expert_load")
      .found(fmt::format("`{}`", whole.substr(0, 60)))
      .expected("balanced, power-law:EXPONENT, or the visits of every expert: 120,98,310,...");
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

Result<ExpertLoad> parse_expert_load_file(std::string_view text, std::string_view name) {
  constexpr std::size_t kMostExperts = 1'000'000;
  const auto problem = [&](std::size_t line, std::string_view found) {
    return Error::at(std::string{name}, fmt::format("line {}", line))
        .found(fmt::format("`{}`", found.substr(0, 40)))
        .expected("the load of one expert, or its number and its load: 17,20480");
  };
  ExpertLoad load;
  std::vector<bool> seen;
  std::size_t columns = 0, number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty() || words.front().front() == '#') continue;
    std::vector<double> numbers;
    for (const std::string_view word : words)
      if (const std::optional<double> value = load_in(word)) numbers.push_back(*value);
    if (numbers.empty() && columns == 0 && load.visits.empty()) continue;  // a header
    if (numbers.size() != words.size() || numbers.size() > 2 || (columns > 0 && numbers.size() != columns))
      return problem(number, line);
    columns = numbers.size();
    if (load.visits.size() >= kMostExperts) return problem(number, line);
    if (columns == 1) {
      load.visits.push_back(numbers[0]);
      continue;
    }
    if (!(numbers[0] < static_cast<double>(kMostExperts)) || numbers[0] != std::floor(numbers[0]))
      return problem(number, line);
    const auto expert = static_cast<std::size_t>(numbers[0]);
    if (expert >= seen.size()) {
      seen.resize(expert + 1, false);
      load.visits.resize(expert + 1, 0.0);
    }
    if (seen[expert]) {
      return Error::at(std::string{name}, fmt::format("line {}", number),
                       fmt::format("expert {} occurs twice", expert))
          .expected("one line per expert");
    }
    seen[expert] = true;
    load.visits[expert] = numbers[1];
  }
  if (const auto gap = std::ranges::find(seen, false); gap != seen.end()) {
    return Error::at(std::string{name}, fmt::format("expert {} has no line", gap - seen.begin()))
        .expected("one line per expert, numbered from 0");
  }
  if (load.visits.size() < 2) {
    return Error::at(std::string{name}, fmt::format("{} loads", load.visits.size()))
        .expected("one line per expert, with its load");
  }
  return load;
}

Status check(const ExpertLoad& load, std::int64_t n_experts, std::int64_t experts_per_token) {
  if (load.visits.empty()) return Ok{};
  const auto experts = static_cast<double>(n_experts), top_k = static_cast<double>(experts_per_token);
  if (static_cast<double>(load.visits.size()) != experts) {
    return Error::at("", "expert loads")
        .found(fmt::format("{} loads", load.visits.size()))
        .expected(fmt::format("one for each of {} experts", n_experts));
  }
  double sum = 0;
  bool whole = true;
  for (const double x : load.visits) {
    sum += x;
    whole = whole && x == std::floor(x);
  }
  const auto is_about = [&](double total) { return std::abs(sum - total) <= kRounding * total; };
  // Shares, multiples of the mean, or visits: a multiple of the experts per token.
  const bool adds_up =
      is_about(1) || is_about(100) || is_about(experts) || (whole && std::fmod(sum, top_k) == 0);
  if (!(sum > 0) || !adds_up) {
    return Error::at("", "expert loads")
        .found(fmt::format("a sum of {:g}", sum))
        .expected(fmt::format("shares that sum to 1 (or 100), multiples of the mean that sum to {}, or "
                              "visits that sum to a multiple of the {} experts per token",
                              n_experts, experts_per_token));
  }
  const double most = *std::ranges::max_element(load.visits) / sum;
  if (most > (1 + kRounding) / top_k) {
    return Error::at("", "expert loads")
        .found(fmt::format("{:.1f} % of the visits to one expert", 100 * most))
        .expected(fmt::format("at most {:.1f} %: a token visits {} different experts", 100 / top_k,
                              experts_per_token));
  }
  return Ok{};
}

double busiest_over_mean(const ExpertLoad& load, std::int64_t n_experts, std::int64_t ranks, double tokens,
                         std::optional<double> capacity) {
  const auto experts = static_cast<std::size_t>(std::max<std::int64_t>(1, n_experts));
  const auto n_ranks =
      static_cast<std::size_t>(std::clamp<std::int64_t>(ranks, 1, static_cast<std::int64_t>(experts)));
  if (!load.visits.empty()) return busiest_of(load.visits, n_ranks, capacity);
  if (load.power_law == 0) return std::min(1.0, capacity.value_or(1.0));
  if (n_ranks == 1 && !capacity) return 1;
  const double most = std::max(2.0, kMostShare * tokens);
  // Inverse of the distribution function: x = ((most^q - 1) u + 1)^(1/q) with q = 1 - exponent, and most^u in
  // the limit of exponent 1.
  const double q = 1 - load.power_law;
  Draws draws;
  std::vector<double> visits(experts);
  double sum = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    for (double& x : visits) {
      const double u = draws.next();
      x = std::abs(q) < 1e-9 ? std::pow(most, u) : std::pow((std::pow(most, q) - 1) * u + 1, 1 / q);
    }
    sum += std::log(busiest_of(visits, n_ranks, capacity));
  }
  return std::exp(sum / kDraws);
}

}  // namespace stepcast

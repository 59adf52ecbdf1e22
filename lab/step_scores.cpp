#include "lab/step_scores.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace stepcast {
namespace {

// Standard deviations from the mean to the 10th and 90th percentile of a normal distribution.
constexpr double kTenthPercentile = 1.2816;

}  // namespace

std::string row_name(const RecordedStepFacts& facts) {
  return facts.step_number >= 0 ? fmt::format("rank {} step {}", facts.rank, facts.step_number)
                                : fmt::format("rank {}", facts.rank);
}

Spread spread_of(std::span<const double> values) {
  Spread spread;
  if (values.empty()) return spread;
  for (const double v : values) spread.mean += v / static_cast<double>(values.size());
  if (values.size() < 2) return spread;
  double squares = 0;
  for (const double v : values) squares += (v - spread.mean) * (v - spread.mean);
  const auto n = static_cast<double>(values.size());
  spread.half_width = kTenthPercentile * std::sqrt(squares / (n - 1) * (1 + 1 / n));
  return spread;
}

ScoredRow row_of(std::string name, double measured_us, double predicted_us, const Spread& spread) {
  ScoredRow row{std::move(name), measured_us / kUsPerMs, predicted_us / kUsPerMs,
                std::nullopt,    std::nullopt,           {}};
  if (spread.half_width) {
    row.p10 = (predicted_us - *spread.half_width) / kUsPerMs;
    row.p90 = (predicted_us + *spread.half_width) / kUsPerMs;
  }
  return row;
}

TestScore& StepScores::test(std::string_view name) {
  for (TestScore& t : tests_) {
    if (t.test == name) return t;
  }
  TestScore& added = tests_.emplace_back();
  added.test = name;
  added.protocol = "recorded";
  added.unit = "ms";
  return added;
}

void StepScores::add(std::string_view name, const std::string& set, ScoredRow row, std::uint64_t n_fit,
                     const std::string& group) {
  TestScore& of = test(name);
  auto found = std::find_if(of.sets.begin(), of.sets.end(), [&](const SetScore& s) { return s.set == set; });
  if (found == of.sets.end()) {
    SetScore& added = of.sets.emplace_back();
    added.set = set;
    added.group = group;
    added.n_fit = n_fit;
    found = std::prev(of.sets.end());
  }
  found->rows.push_back(std::move(row));
}

std::vector<TestScore> StepScores::finish() && {
  std::erase_if(tests_, [](const TestScore& t) { return t.sets.empty() && t.test != "step_time"; });
  for (TestScore& t : tests_) t.finish();
  return std::move(tests_);
}

}  // namespace stepcast

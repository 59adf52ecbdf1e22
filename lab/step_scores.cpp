#include "lab/step_scores.h"

#include <algorithm>
#include <cmath>
#include <utility>

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
  ScoredRow row{std::move(name), measured_us / kUsPerMs, predicted_us / kUsPerMs};
  if (spread.half_width) {
    row.p10 = (predicted_us - *spread.half_width) / kUsPerMs;
    row.p90 = (predicted_us + *spread.half_width) / kUsPerMs;
  }
  return row;
}

void TwoWays::seen(double measured, double first, double second) {
  if (measured <= 0) return;
  first_squares_ += std::pow(first / measured - 1, 2);
  second_squares_ += std::pow(second / measured - 1, 2);
}

double TwoWays::together(double first, double second) const {
  const double first_weight = second_squares_ * second_squares_;
  const double both = first_weight + first_squares_ * first_squares_;
  const double share = both > 0 ? first_weight / both : 0.5;  // of the first
  return share * first + (1 - share) * second;
}

TestScore& StepScores::test(std::string_view name) {
  for (TestScore& t : tests_)
    if (t.test == name) return t;
  return tests_.emplace_back(TestScore{.test = std::string{name}, .protocol = "recorded", .unit = "ms"});
}

void StepScores::add(std::string_view name, const std::string& set, ScoredRow row, std::uint64_t n_fit,
                     const std::string& group) {
  SetScore& of = test(name).set_of(set);
  if (of.rows.empty()) {
    of.group = group;
    of.n_fit = n_fit;
  }
  of.rows.push_back(std::move(row));
}

void StepScores::keep(std::string_view name, const std::string& set, std::string_view extra, double value,
                      ExtraMetric::Over over) {
  std::vector<ExtraMetric>& extras = test(name).set_of(set).extras;
  const auto same = std::ranges::find(extras, extra, &ExtraMetric::name);
  if (same == extras.end())
    extras.push_back({std::string{extra}, value, over});
  else if (over == ExtraMetric::Over::sum)
    same->value += value;
  else
    same->value = std::max(same->value, value);
}

std::vector<TestScore> StepScores::finish() && {
  std::erase_if(tests_, [](const TestScore& t) { return t.sets.empty() && t.test != "step_time"; });
  for (TestScore& t : tests_) t.finish();
  return std::move(tests_);
}

}  // namespace stepcast

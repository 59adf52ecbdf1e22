#include "stepcast/validate/kernel_targets.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace stepcast {
namespace {

using Kind = Target::Kind;

constexpr std::string_view kOperators = "transformer operators fp16";

std::optional<double> extra_of(const std::vector<ExtraMetric>& extras, std::string_view name) {
  for (const ExtraMetric& e : extras) {
    if (e.name == name) return e.value;
  }
  return std::nullopt;
}

const TestScore* find_test(const std::vector<TestScore>& tests, std::string_view name) {
  const auto found =
      std::find_if(tests.begin(), tests.end(), [&](const TestScore& t) { return t.test == name; });
  return found == tests.end() ? nullptr : &*found;
}

const GroupScore* find_group(const TestScore& test, std::string_view name) {
  const auto found = std::find_if(test.groups.begin(), test.groups.end(),
                                  [&](const GroupScore& g) { return g.group == name; });
  return found == test.groups.end() ? nullptr : &*found;
}

// One number of one group of one test.
struct Wanted {
  std::string_view test, group, metric, says;
  std::optional<double> must, aim;
};

constexpr Wanted kWanted[] = {
    {"random_rows", kOperators, "gmae", "geometric mean |error| %", 1.8, 1.2},
    {"random_rows", kOperators, "mape", "mean |error| %", 3.3, 2.4},
    {"held_out_rows", kOperators, "gmae", "geometric mean |error| %", 2.0, 1.4},
    {"held_out_rows", kOperators, "mape", "mean |error| %", 3.6, 2.5},
    {"beyond_range", kOperators, "mape", "mean |error| %", 5, 3},
    {"beyond_range", kOperators, "worst", "mean |error| % of the worst operator", 15, 8},
    {"held_out_rows", "gemm bf16", "mape", "mean |error| %", 6, 4},
    {"held_out_rows", "gemm bf16", "mape_above_100us", "mean |error| % above 100 us", 4, 2.8},
    {"beyond_range", "gemm bf16", "mape", "mean |error| %", 15, 5},
    {"held_out_rows", "attention bf16", "mape", "mean |error| %", 4, 1.8},
    {"unseen_gpu", "element-wise fp32", "mape", "mean |error| %", 10, 7},
    {"unseen_gpu", "softmax fp32", "mape", "mean |error| %", 20, 13},
    {"unseen_gpu", "layernorm fp32", "mape", "mean |error| %", 20, 15},
    {"unseen_gpu", "bmm fp32", "mape", "mean |error| %", 26, 18},
    {"unseen_gpu", "linear fp32", "mape", "mean |error| %", 33, 22},
};

// The families of the tests with unseen GPUs, equally weighted.
constexpr std::string_view kUnseenFamilies[] = {"element-wise fp32", "softmax fp32", "layernorm fp32",
                                                "bmm fp32", "linear fp32"};

std::optional<double> value_of(const TestScore& test, const GroupScore& group, std::string_view metric) {
  if (metric == "mape") return group.overall.mape;
  if (metric == "gmae") return group.overall.gmae;
  if (metric == "worst") {
    double worst = 0;
    for (const SetScore& set : test.sets) {
      if (set.group == group.group) worst = std::max(worst, set.metrics.mape);
    }
    return worst;
  }
  return extra_of(group.extras, metric);
}

void add_unseen_means(std::vector<Target>& targets, const TestScore& test, std::optional<double> must_mean,
                      double aim_mean, double aim_median) {
  double mean = 0, median = 0;
  for (const std::string_view name : kUnseenFamilies) {
    const GroupScore* group = find_group(test, name);
    if (group == nullptr) return;
    mean += group->overall.mape / static_cast<double>(std::size(kUnseenFamilies));
    median += group->overall.median_ape / static_cast<double>(std::size(kUnseenFamilies));
  }
  targets.push_back({fmt::format("{}, these five fp32 families: mean |error| %", test.test), mean,
                     Kind::at_most, must_mean, aim_mean});
  targets.push_back({fmt::format("{}, these five fp32 families: median |error| %", test.test), median,
                     Kind::at_most, std::nullopt, aim_median});
}

}  // namespace

std::vector<Target> kernel_targets(const std::vector<TestScore>& tests) {
  std::vector<Target> targets;
  for (const Wanted& wanted : kWanted) {
    const TestScore* test = find_test(tests, wanted.test);
    const GroupScore* group = test != nullptr ? find_group(*test, wanted.group) : nullptr;
    if (group == nullptr) continue;
    if (const auto value = value_of(*test, *group, wanted.metric)) {
      targets.push_back({fmt::format("{}, {}: {}", wanted.test, wanted.group, wanted.says), *value,
                         Kind::at_most, wanted.must, wanted.aim});
    }
  }
  if (const TestScore* random = find_test(tests, "random_rows")) {
    const GroupScore* group = find_group(*random, kOperators);
    const auto better =
        group != nullptr ? extra_of(group->extras, "better_than_published_pct") : std::optional<double>{};
    if (better) {
      targets.push_back(
          {"random_rows: % of the operators below their published error", *better, Kind::at_least, 90, 100});
    }
  }
  if (const TestScore* unseen = find_test(tests, "unseen_gpu"))
    add_unseen_means(targets, *unseen, 22, 14, 12);
  if (const TestScore* few = find_test(tests, "unseen_gpu_20_points")) {
    add_unseen_means(targets, *few, 18, 10, 8);
  }
  struct Coverage {
    std::string_view test;
    double from, to;
  };
  for (const Coverage& c : {Coverage{"held_out_rows", 75, 90}, Coverage{"beyond_range", 70, 92},
                            Coverage{"unseen_gpu", 65, 92}}) {
    const TestScore* test = find_test(tests, c.test);
    if (test == nullptr || !test->pooled.interval_coverage) continue;
    targets.push_back({fmt::format("{}, all rows: % between p10 and p90", c.test),
                       *test->pooled.interval_coverage, Kind::between, c.from, c.to});
  }
  double below_bound = 0;
  for (const TestScore& test : tests) below_bound += extra_of(test.extras, "below_bound_n").value_or(0);
  if (!tests.empty()) {
    targets.push_back(
        {"all tests: predictions faster than the bound of the device", below_bound, Kind::at_most, 0, 0});
  }
  return targets;
}

}  // namespace stepcast

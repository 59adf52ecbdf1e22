#include "lab/power_limits_suite.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"

namespace stepcast {
namespace {

constexpr double kSlowed = 1.05;
constexpr std::array<double, 3> kMustPercent{6, 10, 4.5};  // slow-down, that of slowed rows, watts

using RuleMember = double PowerLimitRule::*;
struct Searched {
  RuleMember member;
  double least, most, step;
};
constexpr Searched kSearched[] = {{&PowerLimitRule::exponent, 0.5, 5, 0.4},
                                  {&PowerLimitRule::clock_bound, 0.02, 1.5, 0.15},
                                  {&PowerLimitRule::held, 0.8, 1.15, 0.04},
                                  {&PowerLimitRule::spread, 0, 1.2, 0.25}};

double misfit(const std::vector<LimitedRun>& runs, const PowerLimitRule& rule) {
  std::array<double, 3> sum{}, n{};
  const auto add = [&](std::size_t i, double error) {
    sum[i] += error;
    n[i] += 1;
  };
  for (const LimitedRun& run : runs) {
    const DrawUnderLimit is = under_limit(rule, run.draw, run.limit_W);
    const double error = std::abs(is.slow_down / run.slow_down - 1);
    add(0, error);
    if (run.slow_down > kSlowed) add(1, error);
    add(2, std::abs(is.mean_W / run.mean_W - 1));
  }
  double all = 0;
  for (std::size_t i = 0; i < sum.size(); ++i)
    if (n[i] > 0) all += sum[i] / n[i] / kMustPercent[i];
  return all;
}

struct ReadRun {
  std::string gpu, job;
  double limit_W = 0, time_s = 0, mean_W = 0;
};

Result<std::vector<ReadRun>> read_limited(const std::filesystem::path& file) {
  std::vector<ReadRun> runs;
  STEPCAST_TRY(each_row(file, [&](const CsvRows& rows) -> Status {
    ReadRun run{.gpu = std::string{rows.cell("gpu")},
                .job = fmt::format("{} {} {} {}", rows.cell("model"), rows.cell("dataset"),
                                   rows.cell("optimizer"), rows.cell("batch_size_samples"))};
    STEPCAST_ASSIGN(run.limit_W, rows.number("power_limit_W", 1));
    STEPCAST_ASSIGN(run.time_s, rows.number("time_per_epoch_s", 1e-6));
    STEPCAST_ASSIGN(run.mean_W, rows.number("average_power_W", 1));
    runs.push_back(std::move(run));
    return Ok{};
  }));
  return runs;
}

// Rows below the top limit of their job, with what stands at the top.
std::vector<LimitedRun> limited_runs(const std::vector<ReadRun>& read) {
  std::map<std::string, const ReadRun*> tops;
  std::map<std::string, double> least_W;
  for (const ReadRun& run : read) {
    const ReadRun*& top = tops[run.gpu + run.job];
    if (top == nullptr || run.limit_W > top->limit_W) top = &run;
  }
  for (const auto& [job, top] : tops) {
    double& least = least_W.try_emplace(top->gpu, top->mean_W).first->second;
    least = std::min(least, top->mean_W);
  }
  std::vector<LimitedRun> runs;
  for (const ReadRun& run : read) {
    const ReadRun& top = *tops[run.gpu + run.job];
    if (run.limit_W >= top.limit_W) continue;
    runs.push_back({.gpu = run.gpu,
                    .name = fmt::format("{} {:g} W", run.job, run.limit_W),
                    .draw = {least_W[run.gpu], top.limit_W, top.mean_W},
                    .limit_W = run.limit_W,
                    .slow_down = run.time_s / top.time_s,
                    .mean_W = run.mean_W});
  }
  return runs;
}

DrawUnderLimit trivial(const LimitedRun& run) {
  return {std::max(1.0, run.draw.mean_W / run.limit_W), std::min(run.draw.mean_W, run.limit_W)};
}

using Answerer = std::function<DrawUnderLimit(const LimitedRun&)>;

// Slow-down, that of slowed rows, watts of one GPU, into the three tests.
void score_limited(const std::vector<LimitedRun>& of_gpu, std::uint64_t n_fit, const Answerer& answer,
                   std::array<TestScore, 3>& tests) {
  for (TestScore& test : tests) test.sets.push_back({.set = of_gpu.front().gpu, .group = {}, .n_fit = n_fit});
  for (const LimitedRun& run : of_gpu) {
    const DrawUnderLimit is = answer(run);
    const ScoredRow row{.row = run.name, .measured = run.slow_down, .predicted = is.slow_down};
    tests[0].sets.back().rows.push_back(row);
    if (run.slow_down > kSlowed) tests[1].sets.back().rows.push_back(row);
    tests[2].sets.back().rows.push_back({.row = run.name, .measured = run.mean_W, .predicted = is.mean_W});
  }
}

std::array<TestScore, 3> three_tests(const std::string& prefix, const char* protocol) {
  return {TestScore{.test = prefix + "slow_down", .protocol = protocol, .unit = "ratio"},
          TestScore{.test = prefix + "slowed_rows", .protocol = protocol, .unit = "ratio"},
          TestScore{.test = prefix + "watts", .protocol = protocol, .unit = "W"}};
}

}  // namespace

PowerLimitRule fitted_power_limit(const std::vector<LimitedRun>& runs) {
  PowerLimitRule rule;
  double best = misfit(runs, rule), scale = 1;
  for (constexpr double kFinest = 0.02; scale > kFinest;) {
    bool better = false;
    for (const Searched& searched : kSearched) {
      for (const double sign : {1.0, -1.0}) {
        PowerLimitRule next = rule;
        double& value = next.*(searched.member);
        value += sign * scale * searched.step;
        if (value < searched.least || value > searched.most) continue;
        const double error = misfit(runs, next);
        if (error >= best - 1e-9) continue;
        best = error;
        rule = next;
        better = true;
      }
    }
    if (!better) scale /= 2;
  }
  return rule;
}

Result<SuiteResult> validate_power_limits(const std::filesystem::path& data,
                                          const SuiteOptions& /*options*/) {
  SuiteResult result{.suite = "power_limits"};
  STEPCAST_ASSIGN(const std::vector<ReadRun> read, read_limited(data / "power_limits.csv"));
  const std::vector<LimitedRun> runs = limited_runs(read);
  std::map<std::string, std::vector<LimitedRun>> by_gpu;
  for (const LimitedRun& run : runs) by_gpu[run.gpu].push_back(run);
  auto refit = three_tests("", "refit"), simple = three_tests("trivial_", "shipped"),
       shipped = three_tests("shipped_", "shipped");
  for (const auto& [gpu, of_gpu] : by_gpu) {
    std::vector<LimitedRun> others;
    for (const LimitedRun& run : runs)
      if (run.gpu != gpu) others.push_back(run);
    const PowerLimitRule rule = others.empty() ? PowerLimitRule{} : fitted_power_limit(others);
    score_limited(
        of_gpu, others.size(), [&](const LimitedRun& r) { return under_limit(rule, r.draw, r.limit_W); },
        refit);
    score_limited(of_gpu, 0, trivial, simple);
    score_limited(
        of_gpu, 0, [](const LimitedRun& r) { return under_limit({}, r.draw, r.limit_W); }, shipped);
  }
  for (auto* tests : {&refit, &simple, &shipped})
    result.add(finished({&(*tests)[0], &(*tests)[1], &(*tests)[2]}));
  result.skipped.push_back({"rows at the top limit of their training",
                            "they give time and draw without a limit", read.size() - runs.size()});
  return result;
}

}  // namespace stepcast

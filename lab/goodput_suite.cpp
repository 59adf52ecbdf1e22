#include "lab/goodput_suite.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/csv_rows.h"
#include "stepcast/run/goodput.h"
#include "stepcast/run/recovery.h"
#include "stepcast/run/run_forecast.h"
#include "stepcast/run/step_spread.h"

#include "lab/suites.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;
using Over = ExtraMetric::Over;

// Defaults: a write of 8 s, a restart in 15 min by machines, and in 6 times as long by people (range 3 to 10).
constexpr double kWriteS = 8, kDownMin = 15, kByPeople = 6;

double share_percent(double mean_time_s, double down_min) {
  CheckpointedJob job{mean_time_s, kWriteS, 0, std::exp(-down_min * 60 / mean_time_s)};
  return 100 * effective_share(job, best_interval_s(job, 1));
}

TestScore exact_test() {
  TestScore test{.test = "exact", .protocol = "shipped", .unit = "percent"};
  SetScore often{.set = "interruptions nearer than 4 losses"}, seldom{.set = "others"};
  const std::vector<InterruptedJob> jobs = random_jobs(200, 1);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    SetScore& set = jobs[i].mean_time_s < 4 * jobs[i].loss_s() ? often : seldom;
    set.rows.push_back({.row = fmt::format("job {}", i),
                        .measured = 100 * simulated_share(jobs[i], enough_interruptions(jobs[i]), i),
                        .predicted = 100 * forecast_share(jobs[i])});
  }
  test.sets = {std::move(often), std::move(seldom)};
  return test;
}

TestScore downtime_test() {
  TestScore test{.test = "llama_54_days", .protocol = "shipped", .unit = "percent", .relative = false};
  SetScore set{.set = "16,384 H100, 419 interruptions"};
  constexpr double kBetweenS = 54 * 86400.0 / 419, kPublished = 90;
  for (const int minutes : {5, 10, 15, 20, 25, 30}) {
    const double percent = share_percent(kBetweenS, minutes);
    set.rows.push_back(
        {.row = fmt::format("down {} min", minutes), .measured = kPublished, .predicted = percent});
    set.extras.push_back({fmt::format("down_{}_min_percent", minutes), percent, Over::max});
  }
  set.extras.push_back({"published_above_percent", kPublished, Over::max});
  test.sets.push_back(std::move(set));
  return test;
}

Result<double> checkpoint_terabytes(const std::string& model, std::int64_t n_gpus) {
  PredictRequest request;
  request.job.model = model;
  request.job.n_gpus = n_gpus;
  request.platform = "dgx-a100";
  request.budget.iterations = 1000;
  request.budget.failures = "default";
  STEPCAST_ASSIGN(const Forecast forecast, Session{}.predict(request));
  return forecast.training->run->checkpoint_GB * 1e-3;
}

struct Shares {
  SetScore machine{.set = "by machine"}, people{.set = "by people"}, constant{.set = "constant"};
};

// Adds the share of a row and the forecasts for it, or the reason why there is none.
Status add_share(const CsvRows& rows, const std::string& name, Shares& shares) {
  STEPCAST_ASSIGN(const double share, rows.number("effective_training_percent", 1));
  const Result<double> hours = rows.number("mean_time_to_interruption_h", 0.01);
  double between_s = 0;
  if (hours) {
    between_s = *hours * 3600;
  } else if (!rows.cell("n_gpus").empty()) {
    STEPCAST_ASSIGN(const double n_gpus, rows.number("n_gpus", 1));
    RunJob job;
    job.n_gpus = n_gpus;
    job.gpus_per_node = 8;
    STEPCAST_ASSIGN(const RunForecast run,
                    forecast_run({default_failures(), {.storage_GBps = 1}}, job, {1e6, 1e6, 1e6}, 10));
    between_s = run.mean_time_to_interruption_h * 3600;
  } else {
    return Error{"neither GPUs nor the time between interruptions is stated"};
  }
  const bool manual = rows.cell("comparison").find("manual") != std::string_view::npos;
  const Result<double> other = rows.number("comparison_percent", 1);
  shares.machine.rows.push_back(
      {.row = name, .measured = share, .predicted = share_percent(between_s, kDownMin)});
  shares.people.rows.push_back({.row = name,
                                .measured = manual && other ? *other : share,
                                .predicted = share_percent(between_s, kDownMin * kByPeople)});
  shares.constant.rows.push_back({.row = name, .measured = share, .predicted = 0});
  return Ok{};
}

void fill_in_constant(SetScore& set) {
  double sum = 0;
  for (const ScoredRow& row : set.rows) sum += row.measured;
  const auto others = static_cast<double>(set.rows.size()) - 1;
  for (ScoredRow& row : set.rows) row.predicted = others > 0 ? (sum - row.measured) / others : row.measured;
}

}  // namespace

Result<SuiteResult> validate_goodput(const fs::path& data, const SuiteOptions& /*options*/) {
  SuiteResult result{.suite = "goodput"};
  Shares shares;
  SetScore sizes{.set = "checkpoint"};
  STEPCAST_TRY(each_row(data / "goodput.csv", [&](const CsvRows& rows) -> Status {
    const std::string name = fmt::format("line {} {}", rows.line(), rows.cell("model"));
    const Result<double> size_TB = rows.number("checkpoint_size_TB", 0.001);
    if (size_TB && rows.cell("model").starts_with("BLOOM")) {
      STEPCAST_ASSIGN(const std::int64_t n_gpus, rows.extent("n_gpus"));
      STEPCAST_ASSIGN(const double forecast, checkpoint_terabytes("bloom-176b", n_gpus));
      sizes.rows.push_back({.row = name, .measured = *size_TB, .predicted = forecast});
    }
    const Status added = rows.cell("effective_training_percent").empty() ? Status{Error{"states no share"}}
                                                                         : add_share(rows, name, shares);
    if (!added.ok()) result.skipped.push_back({name, added.error().message()});
    return Ok{};
  }));
  fill_in_constant(shares.constant);
  const auto test_of = [](std::string name, std::string unit, SetScore set) {
    TestScore test{.test = std::move(name), .protocol = "shipped", .unit = std::move(unit)};
    if (!set.rows.empty()) test.sets.push_back(std::move(set));
    return test;
  };
  TestScore exact = exact_test(), downtime = downtime_test(),
            machine = test_of("published_shares", "percent", std::move(shares.machine)),
            people = test_of("by_people", "percent", std::move(shares.people)),
            constant = test_of("constant", "percent", std::move(shares.constant)),
            checkpoint = test_of("checkpoint", "TB", std::move(sizes));
  result.add(finished({&exact, &downtime, &machine, &people, &constant, &checkpoint}));
  STEPCAST_ASSIGN(std::vector<TestScore> tails, run_tails(data));
  for (TestScore& test : tails) result.add(finished({&test}));
  return result;
}

double simulated_share(const InterruptedJob& job, std::int64_t interruptions, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  std::exponential_distribution<double> until{1 / job.mean_time_s};
  double clock = 0, kept = 0;
  for (std::int64_t i = 0; i < interruptions; ++i) {
    const double interrupted = until(random);
    clock += interrupted;
    double now = job.down_s, safe = 0;
    while (now < interrupted) {
      now += job.interval_s + job.write_s;
      // A checkpoint that is durable before the interruption is kept.
      if (now + job.lag_s <= interrupted) safe += job.interval_s;
    }
    kept += safe;
  }
  return kept / clock;
}

double forecast_share(const InterruptedJob& job) {
  return effective_share({job.mean_time_s, job.write_s, job.lag_s, std::exp(-job.down_s / job.mean_time_s)},
                         job.interval_s);
}

std::vector<InterruptedJob> random_jobs(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto log_uniform = [&](double least, double most) {
    return least * std::pow(most / least, std::uniform_real_distribution<double>{}(random));
  };
  std::vector<InterruptedJob> jobs;
  for (std::size_t i = 0; i < n; ++i) {
    InterruptedJob job;
    job.mean_time_s = log_uniform(600, 400'000);
    job.down_s = job.mean_time_s * log_uniform(1e-3, 0.5);
    job.write_s = job.mean_time_s * log_uniform(1e-4, 0.05);
    job.lag_s = i % 3 == 0 ? job.write_s * log_uniform(0.1, 2) : 0;
    const double best = best_interval_s({job.mean_time_s, job.write_s, job.lag_s, 1}, 1);
    job.interval_s = std::max(job.lag_s, best * log_uniform(0.4, 2.5));
    jobs.push_back(job);
  }
  return jobs;
}

std::int64_t enough_interruptions(const InterruptedJob& job) {
  return job.mean_time_s < 4 * job.loss_s() ? 200'000 : 40'000;
}

namespace {

// The constant ratio: the median of the seven available series.
constexpr double kTailRatio = 1.16;

struct SingleSteps {
  std::string name;
  double p50_s = 0, p90_s = 0, p99_s = 0;
};

double misfit(const SingleSteps& s, const StepJitter& jitter) {
  const StepSpread spread = step_spread(s.p50_s, jitter);
  return std::abs(std::log(spread.p90_s / s.p90_s)) + std::abs(std::log(spread.p99_s / s.p99_s));
}

// Jitter fitted to all series except one: the least sum of errors on a grid.
StepJitter fitted_jitter(const std::vector<SingleSteps>& all, std::size_t without) {
  StepJitter best;
  double least = std::numeric_limits<double>::infinity();
  for (const double sigma : {0.01, 0.015, 0.02, 0.025, 0.03}) {
    for (const double pauses : {0.02, 0.03, 0.04, 0.05, 0.06}) {
      for (const double pause : {0.3, 0.35, 0.4, 0.45, 0.5}) {
        const StepJitter jitter{.sigma = sigma, .pauses_per_s = pauses, .pause_s = pause};
        double sum = 0;
        for (std::size_t i = 0; i < all.size(); ++i)
          if (i != without) sum += misfit(all[i], jitter);
        if (sum >= least) continue;
        least = sum;
        best = jitter;
      }
    }
  }
  return best;
}

Result<std::vector<SingleSteps>> single_steps(const fs::path& file) {
  std::vector<SingleSteps> all;
  STEPCAST_TRY(each_row(file, [&](const CsvRows& rows) -> Status {
    if (rows.cell("each_value_averages_n_steps") != "1") return Ok{};
    STEPCAST_ASSIGN(const double p50_ms, rows.number("p50_ms", 0.001));
    STEPCAST_ASSIGN(const double p90_ms, rows.number("p90_ms", 0.001));
    STEPCAST_ASSIGN(const double p99_ms, rows.number("p99_ms", 0.001));
    all.push_back({fmt::format("line {} {} {}", rows.line(), rows.cell("case"), rows.cell("gpu")),
                   p50_ms * 1e-3, p90_ms * 1e-3, p99_ms * 1e-3});
    return Ok{};
  }));
  return all;
}

}  // namespace

Result<std::vector<TestScore>> run_tails(const fs::path& folder) {
  const fs::path file = folder / "step_distributions.csv";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::vector<TestScore>{};
  STEPCAST_ASSIGN(const std::vector<SingleSteps> all, single_steps(file));
  SetScore refit{.set = "p99 over p50"}, shipped = refit, constant = refit, p90{.set = "p90 over p50"};
  refit.n_fit = p90.n_fit = all.size() - std::min<std::size_t>(1, all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const SingleSteps& s = all[i];
    const auto add = [&](SetScore& set, double measured_s, double ratio) {
      set.rows.push_back({.row = s.name, .measured = measured_s / s.p50_s, .predicted = ratio});
    };
    const StepSpread spread = step_spread(s.p50_s, fitted_jitter(all, i));
    add(refit, s.p99_s, spread.p99_s / s.p50_s);
    add(p90, s.p90_s, spread.p90_s / s.p50_s);
    add(shipped, s.p99_s, step_spread(s.p50_s).p99_s / s.p50_s);
    add(constant, s.p99_s, kTailRatio);
  }
  std::vector<TestScore> tests;
  const auto test_of = [&](std::string name, std::string protocol, SetScore set) {
    TestScore test{.test = std::move(name), .protocol = std::move(protocol), .unit = "ratio"};
    if (!set.rows.empty()) test.sets.push_back(std::move(set));
    tests.push_back(std::move(test));
  };
  test_of("tails", "refit", std::move(refit));
  test_of("tails_p90", "refit", std::move(p90));
  test_of("tails_shipped", "shipped", std::move(shipped));
  test_of("constant_tails", "shipped", std::move(constant));
  return tests;
}

}  // namespace stepcast

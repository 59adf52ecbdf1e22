#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/run/goodput.h"
#include "stepcast/run/recovery.h"
#include "stepcast/run/run_forecast.h"

#include "lab/interrupted_job.h"
#include "lab/run_tails.h"
#include "lab/suites.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;
using Over = ExtraMetric::Over;

// Where nothing is stated: a write of 8 s, restarted by machines in 15 min, by people in 6 times that (3 to 10).
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

// The row's share beside the forecasts, or why there is none.
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
  const fs::path file = data / "goodput.csv";
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, file.string()));
  Shares shares;
  SetScore sizes{.set = "checkpoint"};
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) break;
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
  }
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

}  // namespace stepcast

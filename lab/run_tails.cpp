#include "lab/run_tails.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/run/step_spread.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// The median of the seven series that could be seen.
constexpr double kTailRatio = 1.16;

struct SingleSteps {
  std::string name;
  double p50_s = 0, p90_s = 0, p99_s = 0;
};

double misfit(const SingleSteps& s, const StepJitter& jitter) {
  const StepSpread spread = step_spread(s.p50_s, jitter);
  return std::abs(std::log(spread.p90_s / s.p90_s)) + std::abs(std::log(spread.p99_s / s.p99_s));
}

// Of all series but one: the least sum of errors on a grid.
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
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, file.string()));
  std::vector<SingleSteps> all;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return all;
    if (rows.cell("each_value_averages_n_steps") != "1") continue;
    STEPCAST_ASSIGN(const double p50_ms, rows.number("p50_ms", 0.001));
    STEPCAST_ASSIGN(const double p90_ms, rows.number("p90_ms", 0.001));
    STEPCAST_ASSIGN(const double p99_ms, rows.number("p99_ms", 0.001));
    all.push_back({fmt::format("line {} {} {}", rows.line(), rows.cell("case"), rows.cell("gpu")),
                   p50_ms * 1e-3, p90_ms * 1e-3, p99_ms * 1e-3});
  }
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

// A forecast that leaves rounds of the pipeline out, against the same forecast with all of them.
#include "stepcast/analyze/steady_rounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stepcast/analyze/step_forecast.h"
#include "stepcast/platform/platform_file.h"

#include "tests/predict/random_training.h"

namespace stepcast::steady_rounds_test {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

const Platform& platform() {
  static const Platform kPlatform = value_of(load_platform("dgx-h100"));
  return kPlatform;
}

StepModel& steps() {
  static StepModel model{platform()};
  return model;
}

// Every time of a forecast by name, ms, and every number of tasks.
struct Numbers {
  std::map<std::string, double> times_ms;
  std::map<std::string, std::uint64_t> counts;
  std::map<std::string, double> idle_by_cause_ms;  // of ranks and streams

  void add(const std::string& prefix, const NamedTimes& times) {
    for (const NamedTime& time : times) times_ms[fmt::format("{}: {}", prefix, time.key)] += time.time_ms;
  }
  void add_idle(const std::string& prefix, const NamedTimes& times) {
    times_ms[prefix + " idle"] = sum_ms(times);
    for (const NamedTime& time : times)
      idle_by_cause_ms[fmt::format("{}: {}", prefix, time.key)] = time.time_ms;
  }
  void add(const std::string& prefix, const std::vector<ForecastShare>& shares) {
    for (const ForecastShare& share : shares) {
      times_ms[fmt::format("{}: {}", prefix, share.what)] = share.time_ms;
      counts[fmt::format("{}: {}", prefix, share.what)] = share.steps;
    }
  }
};

Numbers numbers_of(const Forecast& forecast) {
  Numbers numbers;
  numbers.times_ms["step"] = forecast.step_time_ms;
  numbers.counts["critical class"] = forecast.critical_class;
  numbers.counts["collectives"] = forecast.n_collectives;
  for (const ForecastClass& c : forecast.classes) {
    for (const auto& [what, ms] :
         std::initializer_list<std::pair<const char*, double>>{{"window", c.window_ms},
                                                               {"computation", c.computation_ms},
                                                               {"exposed", c.exposed_comm_ms},
                                                               {"active", c.gpu_active_ms},
                                                               {"transfer", c.transfer_ms},
                                                               {"overlap", c.overlap_ms},
                                                               {"waiting", c.collective_wait_ms},
                                                               {"baseline", c.baseline_ms}}) {
      numbers.times_ms[fmt::format("{} {}", c.name, what)] = ms;
    }
    numbers.add(c.name + " class", c.computation_by_class_ms);
    numbers.add(c.name + " group", c.exposed_comm_by_group_ms);
    numbers.add_idle(c.name, c.idle_ms);
    numbers.add(c.name + " kernels", c.kernels_ms);
    for (const ForecastStream& s : c.streams) {
      const std::string name = fmt::format("{} {}", c.name, s.name);
      numbers.counts[name] = s.tasks;
      numbers.add(name + " parts", s.parts_ms);
      numbers.add_idle(name, s.idle_ms);
      numbers.times_ms[name + " exposed"] = s.exposed_comm_ms;
    }
    for (const ForecastThread& t : c.threads) {
      const std::string name = fmt::format("{} {}", c.name, t.name);
      numbers.times_ms[name] = t.busy_ms;
      numbers.add(name + " idle", t.idle_ms);
      numbers.add(name + " op", t.busy_by_op_ms);
    }
  }
  const ForecastPath& path = forecast.critical_path;
  numbers.times_ms["path"] = path.length_ms;
  numbers.counts["path"] = path.n_steps;
  numbers.add("path class", path.by_class);
  numbers.add("path rank", path.by_rank);
  numbers.add("path name", path.by_name);
  for (const double share : {forecast.coverage.measured, forecast.coverage.fitted, forecast.coverage.analytic,
                             forecast.coverage.assumed}) {
    numbers.times_ms[fmt::format("coverage {}", numbers.times_ms.size())] = share * forecast.step_time_ms;
  }
  double wait_us = 0, transfer_us = 0, last_arrival_us = 0;
  for (const ForecastCollective& c : forecast.collectives) {
    wait_us += c.total_wait_us;
    transfer_us += c.transfer_us;
    for (const ForecastMember& m : c.members) last_arrival_us = std::max(last_arrival_us, m.arrival_us);
  }
  numbers.times_ms["waits"] = wait_us * 1e-3;
  numbers.times_ms["transfers"] = transfer_us * 1e-3;
  numbers.times_ms["last arrival"] = last_arrival_us * 1e-3;
  return numbers;
}

// False where idle time has another cause: what ends a gap at the very same time is decided by rounding.
bool same(const Forecast& shortened, const Forecast& whole) {
  const Numbers a = numbers_of(shortened), b = numbers_of(whole);
  EXPECT_EQ(a.times_ms.size(), b.times_ms.size());
  for (const auto& [what, ms] : b.times_ms) {
    EXPECT_TRUE(a.times_ms.contains(what)) << what;
    if (!a.times_ms.contains(what)) continue;
    EXPECT_NEAR(a.times_ms.at(what) / whole.step_time_ms, ms / whole.step_time_ms, 1e-9) << what;
  }
  for (const auto& [what, n] : b.counts) {
    EXPECT_TRUE(a.counts.contains(what)) << what;
    if (!a.counts.contains(what)) continue;
    EXPECT_EQ(a.counts.at(what), n) << what;
  }
  return std::all_of(b.idle_by_cause_ms.begin(), b.idle_by_cause_ms.end(), [&](const auto& idle) {
    const auto found = a.idle_by_cause_ms.find(idle.first);
    return found != a.idle_by_cause_ms.end() &&
           std::abs(found->second - idle.second) <= 1e-9 * whole.step_time_ms;
  });
}

TEST(SteadyRounds, ForecastsAreThoseOfAllMicroBatches) {
  std::mt19937_64 random{25};
  int shortened = 0, other_causes = 0;
  for (int i = 0; i < 1000; ++i) {
    const test::RandomTraining training = test::random_training(random, 24);
    SCOPED_TRACE(fmt::format("{}: {}", i, describe(training)));
    const PredictedStep step = value_of(predict_step(training.model, training.layout, steps()));
    const StepForecastOptions options{.explained = false, .forecast = {.collectives = 0, .path_names = 0}};
    const Forecast whole = value_of(
        step_forecast({training.model, training.layout, platform(), step, steps().pricer()}, options));
    const Forecast quick =
        value_of(step_forecast(training.model, training.layout, platform(), steps(), options));
    if (!same(quick, whole)) ++other_causes;
    if (testing::Test::HasFailure()) return;
    const std::array pools{StagePool{static_cast<std::uint32_t>(training.layout.degrees.pipeline), &steps()}};
    const PredictedStep first = value_of(predict_short_step(training.model, training.layout, pools, 0));
    const FlatProgram flat{first.program};
    if (steady_rounds(first, flat, TaskTimes::simulated(flat, first.timeline))) ++shortened;
  }
  EXPECT_GT(shortened, 500);
  EXPECT_LE(other_causes, 5);
}

}  // namespace
}  // namespace stepcast::steady_rounds_test

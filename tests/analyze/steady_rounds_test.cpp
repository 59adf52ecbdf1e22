// A forecast that leaves rounds of the pipeline out and takes a pass as one task, against the same forecast with all tasks.
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
#include "stepcast/predict/pipeline_walk.h"

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

// Meetings of a name are numbered from 0 on, in the order of their first arrivals.
void expect_numbered(const Forecast& forecast) {
  std::map<std::string, std::map<std::uint32_t, double>> arrivals;
  for (const ForecastCollective& c : forecast.collectives) {
    double first_us = c.members.front().arrival_us;
    for (const ForecastMember& m : c.members) first_us = std::min(first_us, m.arrival_us);
    EXPECT_TRUE(arrivals[c.name].emplace(c.ordinal, first_us).second) << c.name << ' ' << c.ordinal;
  }
  for (const auto& [name, by_ordinal] : arrivals) {
    EXPECT_EQ(by_ordinal.rbegin()->first + 1, by_ordinal.size()) << name;
    double before_us = 0;
    for (const auto& [ordinal, us] : by_ordinal) {
      EXPECT_GE(us, before_us - 1e-9 * forecast.step_time_ms * 1e3) << name << ' ' << ordinal;
      before_us = us;
    }
  }
}

// Of the dearest, those that a short list shows too: as dear, and with the same number where none is as dear.
void expect_dearest(const Forecast& few, const Forecast& all) {
  const auto cost = [](const ForecastCollective& c) { return c.total_wait_us + c.transfer_us; };
  const auto costs = [&](const Forecast& forecast) {
    std::vector<double> list;
    for (const ForecastCollective& c : forecast.collectives) list.push_back(cost(c));
    std::sort(list.rbegin(), list.rend());
    return list;
  };
  const std::vector<double> shown = costs(few), known = costs(all);
  ASSERT_LE(shown.size(), known.size());
  for (std::size_t i = 0; i < shown.size(); ++i)
    EXPECT_NEAR(shown[i], known[i], 1e-9 * all.step_time_ms * 1e3);
  std::map<std::pair<std::string, std::uint32_t>, double> numbered;
  for (const ForecastCollective& c : all.collectives) numbered[{c.name, c.ordinal}] = cost(c);
  for (const ForecastCollective& c : few.collectives) {
    const auto same = numbered.find({c.name, c.ordinal});
    ASSERT_NE(same, numbered.end()) << c.name << ' ' << c.ordinal;
  }
}

// A layout of so many micro-batches more on every rank.
Layout with_more(const Layout& layout, std::int64_t micro_batches) {
  Layout more = layout;
  more.batch.global_batch_sequences +=
      layout.batch.global_batch_sequences / layout.micro_batches() * micro_batches;
  return more;
}

// One set of short steps for all layouts: most forecasts are made from what a step with more micro-batches left there.
TEST(SteadyRounds, ForecastsAreThoseOfAllMicroBatches) {
  std::mt19937_64 random{25};
  ShortSteps known;
  int shortened = 0, with_bodies = 0, other_causes = 0;
  for (int i = 0; i < 300; ++i) {
    const test::RandomTraining training = test::random_training(random, 24);
    SCOPED_TRACE(fmt::format("{}: {}", i, describe(training)));
    const PredictedStep step = value_of(predict_step(training.model, training.layout, steps()));
    const StepForecastOptions options{.explained = false, .forecast = {.collectives = 0, .path_names = 0}};
    const Forecast whole =
        value_of(step_forecast({training.model, training.layout, platform(), steps()}, step, options));
    const PipelineShape& shape = step.parts.schedule.shape;
    const Layout more = with_more(training.layout, round_micro_batches(shape) * std::int64_t{1 + i % 40});
    static_cast<void>(value_of(step_forecast({training.model, more, platform(), steps()}, known, options)));
    const std::size_t n_known = known.size();
    const StepForecastInput input{training.model, training.layout, platform(), steps()};
    const Forecast quick = value_of(step_forecast(input, known, options));
    if (!same(quick, whole)) ++other_causes;
    expect_numbered(quick);
    if (short_step_micro_batches(shape, 0) < shape.micro_batches && n_known < 40) {
      EXPECT_EQ(known.size(), n_known);
    }
    StepForecastOptions short_list = options;
    short_list.forecast.collectives = 16;
    expect_dearest(value_of(step_forecast(input, known, short_list)), quick);
    if (testing::Test::HasFailure()) return;
    PricedStep parts = value_of(steps().price(training.model, training.layout));
    const std::uint32_t few = short_step_micro_batches(parts.schedule.shape, 0);
    const PredictedStep first = value_of(predict_short_step(std::move(parts), training.layout, steps(), few));
    const FlatProgram flat{first.program};
    if (first.bodies) ++with_bodies;
    if (steady_rounds(first, flat, TaskTimes::simulated(flat, first.timeline))) ++shortened;
  }
  EXPECT_GT(shortened, 150);
  EXPECT_GT(with_bodies, 100);
  EXPECT_LE(other_causes, 3);
}

}  // namespace
}  // namespace stepcast::steady_rounds_test

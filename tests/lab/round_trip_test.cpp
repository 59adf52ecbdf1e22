// The round trip on generated jobs and, where the measured data is there, on the recorded 8-rank set.
#include "lab/round_trip.h"

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stepcast/trace/readers.h"

#include "tests/support/data.h"
#include "tests/support/fails_with.h"
#include "tests/support/trace_generator.h"

namespace stepcast::round_trip_test {
namespace {

struct TraceSet {
  std::vector<RecordedRank> recorded;
  std::vector<ExecutionTrace> execution;
  [[nodiscard]] std::vector<RecordedInput> inputs() const {
    std::vector<RecordedInput> list;
    for (std::size_t r = 0; r < recorded.size(); ++r)
      list.push_back({&recorded[r], r < execution.size() ? &execution[r] : nullptr});
    return list;
  }
};

TraceSet generated(const test::GeneratorOptions& options, bool with_execution_traces = true) {
  TraceSet set;
  for (test::GeneratedRank& rank : test::generate_job(options).ranks) {
    set.recorded.push_back(std::move(rank.recorded));
    if (!with_execution_traces) continue;
    auto parsed = parse_execution_trace(rank.execution_trace, "generated");
    EXPECT_TRUE(parsed.ok());
    set.execution.push_back(std::move(parsed).value());
  }
  return set;
}

std::string describe(const RoundTripResult& r) {
  return fmt::format(
      "{}: ends {:.4f} %, kernel starts median {:.3f}, p95 {:.3f}, max {:.3f} us of {}, {} lost", r.scenario,
      r.largest_end_error_percent(), r.kernel_start_error_quantile_us(0.5),
      r.kernel_start_error_quantile_us(0.95), r.kernel_start_error_quantile_us(1),
      r.kernel_start_error_us.size(), r.lost);
}

// What a round trip has to keep: 0.1 % at the ends of the ranks, 20 us at the 95th percentile of kernel
// starts.
void expect_kept(const TraceSet& set, const RoundTripScenario& scenario) {
  const auto result = round_trip(set.inputs(), scenario);
  ASSERT_TRUE(result.ok()) << scenario.name << ": " << result.error().message();
  SCOPED_TRACE(describe(*result));
  EXPECT_LE(result->largest_end_error_percent(), 0.1);
  EXPECT_LE(result->kernel_start_error_quantile_us(0.95), 20);
  EXPECT_EQ(result->lost, 0u);
  EXPECT_GT(result->kernel_start_error_us.size(), 100u);
}

struct Variant {
  std::string name;
  test::GeneratorOptions options;
  bool with_execution_traces = true;
};

std::vector<Variant> variants() {
  using test::BatchPipeline, test::EventRecords;
  std::vector<Variant> all;
  const auto add = [&](std::string name, bool with_execution_traces, auto&& set) {
    Variant v{std::move(name), {}, with_execution_traces};
    v.options.seed = 100 + all.size();
    set(v.options);
    all.push_back(std::move(v));
  };
  add("HiddenEvents", true, [](auto&) {});
  add("HiddenEventsWithoutExecutionTraces", false, [](auto&) {});
  add("SameStep", true, [](auto& o) { o.pipeline = BatchPipeline::same_step; });
  add("EventRecordCalls", true, [](auto& o) { o.event_records = EventRecords::calls; });
  add("SyncRecordsAndNanoseconds", true, [](auto& o) {
    o.event_records = EventRecords::sync_records;
    o.whole_microseconds = false;
  });
  add("SecondStep", true, [](auto& o) { o.steps = 2; });
  add("WaitingForTheGpu", true, [](auto& o) { o.kernel_scale = 8; });
  add("WaitingForTheGpuInTheSameStep", true, [](auto& o) {
    o.kernel_scale = 8;
    o.pipeline = BatchPipeline::same_step;
  });
  return all;
}

// Names of tests hold no addresses.
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

class RoundTrip : public ::testing::TestWithParam<Variant> {};

TEST_P(RoundTrip, KeepsEveryScenario) {
  const TraceSet set = generated(GetParam().options, GetParam().with_execution_traces);
  for (const RoundTripScenario& scenario : standard_round_trips(set.recorded.size()))
    expect_kept(set, scenario);
}

INSTANTIATE_TEST_SUITE_P(Generated, RoundTrip, ::testing::ValuesIn(variants()),
                         [](const auto& variant) { return variant.param.name; });

TEST(RoundTripScenarios, MoveWhatTheySayTheyMove) {
  test::GeneratorOptions options;
  options.ranks = 2;
  const TraceSet set = generated(options);
  RoundTripScenario scenario;
  scenario.start_shift_us = {0, 20000};  // far beyond all waiting: both ranks end that much later
  auto late = round_trip(set.inputs(), scenario);
  ASSERT_TRUE(late.ok()) << late.error().message();
  for (const auto& end : late->ends) EXPECT_GT(end.changed_us - end.original_us, 15000);
  scenario = {};
  scenario.kernel_factor = 10;
  auto slow = round_trip(set.inputs(), scenario);
  ASSERT_TRUE(slow.ok()) << slow.error().message();
  for (const auto& end : slow->ends) EXPECT_GT(end.changed_us - end.original_us, 10000);
}

TEST(RoundTripScenarios, GoThroughTextWithTheSameResult) {
  test::GeneratorOptions options;
  options.ranks = 2;
  const TraceSet set = generated(options);
  RoundTripScenario scenario;
  scenario.kernel_factor = 3;
  const auto events = round_trip(set.inputs(), scenario);
  scenario.through_file = true;
  const auto text = round_trip(set.inputs(), scenario);
  ASSERT_TRUE(events.ok() && text.ok());
  EXPECT_EQ(events->kernel_start_error_us, text->kernel_start_error_us);
  for (std::size_t r = 0; r < events->ends.size(); ++r)
    EXPECT_EQ(events->ends[r].returned_us, text->ends[r].returned_us);
}

TEST(RoundTripScenarios, PassOnTheErrorsOfTheImport) {
  const std::vector<RecordedInput> nothing;
  EXPECT_THAT(round_trip(nothing, {}), test::FailsWith("no profiler trace was given"));
}

// Recorded traces, 8 ranks of a DLRM on V100.
TEST(RoundTripOfRecordedTraces, KeepsEveryScenario) {
  SKIP_WITHOUT_DATA();
  const auto folder = *test::measured_data() / "traces" / "dlrm8";
  TraceSet set;
  for (int rank = 0; rank < 8; ++rank) {
    auto recorded = read_kineto(folder / fmt::format("kineto_rank{}.json.gz", rank));
    ASSERT_TRUE(recorded.ok()) << recorded.error().message();
    auto execution = read_execution_trace(folder / fmt::format("et_rank{}.json.gz", rank));
    ASSERT_TRUE(execution.ok()) << execution.error().message();
    set.recorded.push_back(std::move(recorded).value());
    set.execution.push_back(std::move(execution).value());
  }
  for (const RoundTripScenario& scenario : standard_round_trips(8)) expect_kept(set, scenario);
}

}  // namespace
}  // namespace stepcast::round_trip_test

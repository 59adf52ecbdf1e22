// Operators inside each other without end: what is asked of each must not cost what all around it cost.
#include <gtest/gtest.h>

#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/api/stepcast.h"

#include "tests/support/trace_builder.h"
#include "tests/support/trace_files.h"

namespace stepcast::deep_nesting_test {
namespace {

// Ends within seconds; where it did not, each operator looked at all around it, or called itself for each of them.
TEST(DeepNesting, OfTwoHundredThousandOperatorsIsReplayed) {
  constexpr int kDepth = 200'000, kLaunchEvery = 1'000;
  constexpr double kApartUs = 0.02, kCallUs = 5;
  test::TraceBuilder trace;
  const int main = trace.thread(1);
  // Down to the innermost with a launch now and then, then up again.
  const auto begins_us = [](int i) { return kApartUs * i + kCallUs * (i / kLaunchEvery); };
  const double bottom_us = begins_us(kDepth), end_us = bottom_us + kApartUs * kDepth;
  trace.step(main, 1, 0, end_us + 1);
  for (int i = 0; i < kDepth; ++i) {
    trace.op(main, "aten::inner", begins_us(i), end_us - kApartUs * i - begins_us(i));
    if (i % kLaunchEvery != kLaunchEvery - 1) continue;
    const double call_us = begins_us(i) + kApartUs / 2;
    trace.launch(main, call_us, kCallUs, 7, "kernel", call_us + kCallUs + 3, 2);
  }
  const fixtures::TraceFolder folder;
  folder.write("rank0.json", trace.build());
  const Result<Replayed> replayed = Session{}.replay({.places = {folder.path()}});
  ASSERT_TRUE(replayed.ok()) << replayed.error().message();
  const ReplayedRank& rank = replayed->analysis->ranks.front();
  EXPECT_NEAR(rank.step.measured_us, end_us + 1, 0.01);
  EXPECT_NEAR(rank.step.simulated_us, rank.step.measured_us, 1e-3 * rank.step.measured_us);
  PredictTraceRequest request{.places = {folder.path()}};
  request.what_if = {"host=2x"};
  const Result<Forecast> predicted = Session{}.predict(request);
  ASSERT_TRUE(predicted.ok()) << predicted.error().message();
  EXPECT_NEAR(predicted->step_time_ms, 0.5e-3 * rank.step.measured_us, 0.02e-3 * rank.step.measured_us);
}

}  // namespace
}  // namespace stepcast::deep_nesting_test

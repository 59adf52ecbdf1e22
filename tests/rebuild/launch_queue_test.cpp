// Launches that wait while the queue of their stream is full.
#include "stepcast/rebuild/detail/launch_queue.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "lab/round_trip.h"
#include "tests/support/replayed.h"
#include "tests/support/trace_builder.h"

namespace stepcast::launch_queue_test {
namespace {

using test::step_with_kernels;
using test::TraceBuilder;

constexpr double kStepUs = 1000;
constexpr double kCallUs = 2;

// A CPU that launches 2,000 kernels of `kernel_us` every 2 us, at most `depth` of which are not over: a launch waits for
// the one `depth` before it.
struct Queue {
  std::vector<double> call_us, return_us, start_us, end_us;
  [[nodiscard]] double step_us() const { return return_us.back() + 10; }
};
Queue fill_queue(double kernel_us, std::size_t depth) {
  constexpr std::size_t kLaunches = 2000;
  constexpr double kDelayUs = 3;
  Queue q;
  double now = 10;
  for (std::size_t i = 0; i < kLaunches; ++i) {
    q.call_us.push_back(now);
    now += kCallUs;
    if (i >= depth) now = std::max(now, q.end_us[i - depth] + 1);
    q.return_us.push_back(now);
    q.start_us.push_back(std::max(now + kDelayUs, i > 0 ? q.end_us.back() : 0));
    q.end_us.push_back(q.start_us.back() + kernel_us);
  }
  return q;
}

RecordedRank record(const Queue& q) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, q.step_us());
  b.op(main, "loop", 5, q.step_us() - 6);
  for (std::size_t i = 0; i < q.call_us.size(); ++i)
    b.launch(main, q.call_us[i], q.return_us[i] - q.call_us[i], 7, "gemm", q.start_us[i],
             q.end_us[i] - q.start_us[i]);
  return b.build();
}

// What the record shows of its queue foretells steps of other kernels, both longer and shorter, wherever the queue ends.
TEST(LaunchQueue, DepthOfTheRecordHoldsLaunchesOfOtherKernels) {
  for (const std::size_t depth : {std::size_t{900}, std::size_t{1022}}) {
    SCOPED_TRACE(depth);
    const Queue recorded = fill_queue(12, depth);
    const RecordedRank rank = record(recorded);
    EXPECT_NEAR(step_with_kernels(rank, 1), recorded.step_us(), 0.1);
    for (const double factor : {0.0, 0.25, 0.5, 2.0, 10.0, 30.0}) {
      SCOPED_TRACE(factor);
      const double truth = fill_queue(12 * factor, depth).step_us();
      EXPECT_NEAR(step_with_kernels(rank, factor), truth, 0.002 * truth);
    }
  }
}

// Kernels of 1 us never fill the queue: that it would hold 1,022 is known of the driver.
TEST(LaunchQueue, DepthOfTheDriverHoldsLaunchesWhereNoneWasHeld) {
  const RecordedRank rank = record(fill_queue(1, 1022));
  EXPECT_NEAR(step_with_kernels(rank, 1), fill_queue(1, 1022).step_us(), 0.1);
  const double truth = fill_queue(20, 1022).step_us();
  EXPECT_NEAR(step_with_kernels(rank, 20), truth, 0.002 * truth);
}

// More were pending than CUDA's driver holds, and no launch took longer: nothing is known of this queue.
TEST(LaunchQueue, DeeperQueuesWithoutWaitsAreLeftAlone) {
  const RecordedRank rank = record(fill_queue(12, 5000));
  const double step_us = 10 + 2000 * kCallUs + 10;
  EXPECT_NEAR(step_with_kernels(rank, 1), step_us, 0.1);
  EXPECT_NEAR(step_with_kernels(rank, 10), step_us, 0.1);
}

// Kernels of 3, 10 and 30 times their length, written as a trace, read and made as short again.
TEST(LaunchQueue, FullQueuesSurviveTheRoundTrip) {
  const RecordedRank rank = record(fill_queue(12, 1022));
  const std::vector<RecordedInput> input{{&rank, nullptr}};
  for (const RoundTripScenario& scenario : standard_round_trips(1)) {
    SCOPED_TRACE(scenario.name);
    const auto result = round_trip(input, scenario);
    ASSERT_TRUE(result.ok()) << result.error().message();
    EXPECT_LT(result->largest_end_error_percent(), 0.1);
    EXPECT_LT(result->kernel_start_error_quantile_us(0.95), 20);
  }
}

// A slow launch is no wait where few launches are pending.
TEST(LaunchQueue, ShortQueuesHoldNothing) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, kStepUs);
  for (int i = 0; i < 20; ++i) b.launch(main, 10.0 + 40 * i, i == 10 ? 35 : 3, 7, "gemm", 60.0 + 40 * i, 40);
  EXPECT_DOUBLE_EQ(step_with_kernels(b.build(), 0.25), kStepUs);
}

// Work whose launch is not in the file was not pending all the time.
TEST(LaunchQueue, WorkWithoutLaunchesFillsNoQueue) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 20'000);
  for (int i = 0; i < 1500; ++i) b.kernel(-1, 7, "gemm", 20 + 10.0 * i, 9);
  for (int i = 0; i < 100; ++i)
    b.launch(main, 10.0 + 40 * i, i % 10 == 9 ? 35 : 3, 7, "small", 60.0 + 40 * i, 0.5);
  EXPECT_DOUBLE_EQ(step_with_kernels(b.build(), 0.25), 20'000);
}

}  // namespace
}  // namespace stepcast::launch_queue_test

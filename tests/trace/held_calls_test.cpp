// Calls that the GPU holds back although their names do not say so.
#include "stepcast/trace/detail/held_calls.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/replayed.h"
#include "tests/support/trace_builder.h"

namespace stepcast {
namespace {

using test::replay;
using test::Replayed;
using test::scale_kernels;
using test::TraceBuilder;

constexpr double kStepUs = 1000;

// A launch [10, 16] whose kernel runs [20, kernel_end], a call [30, 270], and the same call [500, 540] that nothing
// holds.
RecordedRank memory_call(std::string_view name, double kernel_end_us) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, kStepUs);
  b.op(main, "aten::empty", 5, 600);
  b.launch(main, 10, 6, 7, "gemm", 20, kernel_end_us - 20);
  b.call(main, name, 30, 240);
  b.call(main, name, 500, 40);
  return b.build();
}

double step_with_kernels(const RecordedRank& rank, double factor) {
  const Replayed r =
      replay({rank}, {}, [&](const Program& p, Costs& c, auto&) { scale_kernels(p, c, factor); });
  return r.timeline.lane_free_us(RankClassId{0})[0];
}

// The kernel ends at 220, the call at 270: 50 us are its own.
TEST(HeldCalls, FreeingMemoryWaitsForTheDevice) {
  for (const char* name :
       {"cudaFree", "hipFree", "cudaFreeHost", "hipHostFree", "cuMemFree_v2", "cudaMalloc"}) {
    SCOPED_TRACE(name);
    const RecordedRank rank = memory_call(name, 220);
    const Replayed r = replay({rank});
    EXPECT_DOUBLE_EQ(r.at(0, name, 0, TaskKind::sync_return).end_us, 270);
    EXPECT_DOUBLE_EQ(r.recorded.facts[0].unexplained_wait_us, 0);
    const auto origin = static_cast<std::size_t>(EdgeOrigin::synchronization);
    EXPECT_EQ(r.recorded.facts[0].inferred_edge_count[origin], 1U);
    EXPECT_DOUBLE_EQ(r.recorded.facts[0].kept_delay_us[origin], 50);
    EXPECT_DOUBLE_EQ(step_with_kernels(rank, 1), 1000);
    EXPECT_DOUBLE_EQ(step_with_kernels(rank, 0.5), 900);  // the kernel ends at 120, the call at 170
    EXPECT_DOUBLE_EQ(step_with_kernels(rank, 0), 810);    // the call takes its own 50: [30, 80]
    EXPECT_DOUBLE_EQ(step_with_kernels(rank, 2), 1200);   // the kernel ends at 420
  }
}

TEST(HeldCalls, OtherLongCallsKeepTheirTime) {
  // The device works beyond the call; an allocation that is long by itself; in the order of the stream; no memory.
  for (const auto& [name, kernel_end_us] :
       {std::pair{"cudaFree", 400.0}, std::pair{"cudaMalloc", 100.0}, std::pair{"cudaFreeAsync", 220.0},
        std::pair{"cudaGetDevice", 220.0}}) {
    SCOPED_TRACE(name);
    const RecordedRank rank = memory_call(name, kernel_end_us);
    EXPECT_DOUBLE_EQ(step_with_kernels(rank, 1), 1000);
    EXPECT_DOUBLE_EQ(step_with_kernels(rank, 0.5), 1000);
  }
}

// A CPU that launches kernels of `kernel_us` every 2 us, at most 1,024 of which are not over: a launch waits for the
// one 1,024 before it.
struct Queue {
  std::vector<double> call_us, return_us, start_us, end_us;
};
Queue fill_queue(double kernel_us) {
  constexpr std::size_t kLaunches = 2000, kHeld = 1024;
  constexpr double kCallUs = 2, kDelayUs = 3;
  Queue q;
  double now = 10;
  for (std::size_t i = 0; i < kLaunches; ++i) {
    q.call_us.push_back(now);
    if (i >= kHeld) now = std::max(now, q.end_us[i - kHeld]);
    now += kCallUs;
    q.return_us.push_back(now);
    q.start_us.push_back(std::max(now + kDelayUs, i > 0 ? q.end_us.back() : 0));
    q.end_us.push_back(q.start_us.back() + kernel_us);
  }
  return q;
}

TEST(HeldCalls, LaunchesWaitWhileTheQueueIsFull) {
  const Queue q = fill_queue(12);
  TraceBuilder b;
  const int main = b.thread(1);
  const double end_us = q.return_us.back() + 10;
  b.step(main, 1, 0, end_us);
  b.op(main, "loop", 5, end_us - 6);
  for (std::size_t i = 0; i < q.call_us.size(); ++i)
    b.launch(main, q.call_us[i], q.return_us[i] - q.call_us[i], 7, "gemm", q.start_us[i],
             q.end_us[i] - q.start_us[i]);
  const RecordedRank rank = b.build();
  EXPECT_NEAR(step_with_kernels(rank, 1), end_us, 0.1);
  // The queue is full from launch 1229 on (launched every 2 us, over every 12): 10 us of every call are waiting.
  const Replayed r = replay({rank});
  const std::uint32_t waits =
      r.recorded.facts[0].inferred_edge_count[static_cast<std::size_t>(EdgeOrigin::synchronization)];
  EXPECT_GE(waits, 760U);
  EXPECT_LE(waits, 775U);
  // Of kernels half as long the truth is known, too: the queue fills later, and calls wait 4 us.
  const double truth = fill_queue(6).return_us.back() + 10;
  EXPECT_NEAR(step_with_kernels(rank, 0.5), truth, 0.02 * truth);
  // Of kernels of no length every call takes its 2 us.
  EXPECT_NEAR(step_with_kernels(rank, 0), 10 + 2.0 * 2000 + 10, 50);
}

// A slow launch is no wait where few launches are pending.
TEST(HeldCalls, ShortQueuesHoldNothing) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, kStepUs);
  for (int i = 0; i < 20; ++i) b.launch(main, 10.0 + 40 * i, i == 10 ? 35 : 3, 7, "gemm", 60.0 + 40 * i, 40);
  EXPECT_DOUBLE_EQ(step_with_kernels(b.build(), 0.25), kStepUs);
}

// Work whose launch is not in the file was not pending all the time.
TEST(HeldCalls, WorkWithoutLaunchesFillsNoQueue) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 20'000);
  for (int i = 0; i < 1500; ++i) b.kernel(-1, 7, "gemm", 20 + 10.0 * i, 9);
  for (int i = 0; i < 100; ++i)
    b.launch(main, 10.0 + 40 * i, i % 10 == 9 ? 35 : 3, 7, "small", 60.0 + 40 * i, 0.5);
  EXPECT_DOUBLE_EQ(step_with_kernels(b.build(), 0.25), 20'000);
}

}  // namespace
}  // namespace stepcast

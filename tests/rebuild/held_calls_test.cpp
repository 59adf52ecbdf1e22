// Calls that the GPU holds back although their names do not say so.
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/rebuild/detail/launch_queue.h"

#include "tests/support/replayed.h"
#include "tests/support/trace_builder.h"

namespace stepcast::held_calls_test {
namespace {

using test::replay;
using test::Replayed;
using test::step_with_kernels;
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

// The kernel ends at 220, the call at 270: 50 us are its own, host time behind the wait.
TEST(HeldCalls, FreeingMemoryWaitsForTheDevice) {
  for (const char* name :
       {"cudaFree", "hipFree", "cudaFreeHost", "hipHostFree", "cuMemFree_v2", "cudaMalloc"}) {
    SCOPED_TRACE(name);
    const RecordedRank rank = memory_call(name, 220);
    const Replayed r = replay({rank});
    EXPECT_DOUBLE_EQ(r.at(0, name, 0, TaskKind::sync_return).start_us, 220);
    EXPECT_DOUBLE_EQ(r.at(0, name, 0, TaskKind::sync_return).end_us, 270);
    EXPECT_DOUBLE_EQ(r.recorded.facts[0].unexplained_wait_us, 0);
    const auto origin = static_cast<std::size_t>(EdgeOrigin::synchronization);
    EXPECT_DOUBLE_EQ(r.recorded.facts[0].kept_delay_us[origin], 0);
    EXPECT_DOUBLE_EQ(step_with_kernels(rank, 1), 1000);
    EXPECT_DOUBLE_EQ(step_with_kernels(rank, 0.5), 900);  // the kernel ends at 120, the call at 170
    EXPECT_DOUBLE_EQ(step_with_kernels(rank, 0), 810);    // the call takes its own 50: [30, 80]
    EXPECT_DOUBLE_EQ(step_with_kernels(rank, 2), 1200);   // the kernel ends at 420
  }
}

// A call that frees memory while the device has nothing to do waits once the device has: the kernel [20, 25] of 20 times
// its length ends at 120, the call [30, 70] takes its 40 us behind it, and the step its 50 us more.
TEST(HeldCalls, FreeingMemoryOfAnIdleDeviceWaitsOnceItIsBusy) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, kStepUs);
  b.op(main, "aten::empty", 5, 600);
  b.launch(main, 10, 6, 7, "gemm", 20, 5);
  b.call(main, "cudaFree", 30, 40);
  const RecordedRank rank = b.build();
  EXPECT_DOUBLE_EQ(step_with_kernels(rank, 1), 1000);
  EXPECT_DOUBLE_EQ(step_with_kernels(rank, 20), 1090);
}

// One that returned while the device worked says that calls of its name do not wait.
TEST(HeldCalls, CallsThatReturnWhileTheDeviceWorksHoldNothing) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, kStepUs);
  b.op(main, "aten::empty", 5, 900);
  b.launch(main, 10, 6, 7, "gemm", 20, 5);
  b.call(main, "cudaFreeHost", 30, 40);
  b.launch(main, 110, 6, 7, "gemm", 120, 500);
  b.call(main, "cudaFreeHost", 130, 40);
  EXPECT_DOUBLE_EQ(step_with_kernels(b.build(), 1.5), 1000);
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

}  // namespace
}  // namespace stepcast::held_calls_test

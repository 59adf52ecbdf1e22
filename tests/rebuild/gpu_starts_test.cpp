// Hand-worked traces: when GPU work begins later, or earlier, than launch and stream order say.
#include <cstddef>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/replayed.h"
#include "tests/support/trace_builder.h"

namespace stepcast::gpu_starts_test {
namespace {

using test::replay;
using test::Replayed;
using test::scale_kernels;
using test::TraceBuilder;

constexpr auto kOffset = static_cast<std::size_t>(EdgeOrigin::recorded_offset);

double step_end_us(const Replayed& r) {
  const TaskId task = r.recorded.facts[0].step_end_task;
  return r.timeline.instance(RankClassId{0}, 0, InstanceId{0})[task.index()].end_us;
}

// Four launches of kernels that queue: each begins 1 after the one before, and the first 2 after its call.
void add_queue(TraceBuilder& b, int thread, double at_us, int stream) {
  for (int k = 0; k < 4; ++k) b.launch(thread, at_us + 10 * k, 6, stream, "queued", at_us + 8 + 51 * k, 50);
}

// One graph launch [100, 150]: first [160, 170] and, on stream 7, second [173, 183]; on stream 8 branch [171, 200];
// behind both, on stream 7, join [201, 211].
TEST(GpuStarts, NodesOfAGraphKeepTheirDistances) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 500);
  const std::int64_t graph = b.call(main, "cudaGraphLaunch", 100, 50);
  b.kernel(graph, 7, "first", 160, 10);
  b.kernel(graph, 7, "second", 173, 10);
  b.kernel(graph, 8, "branch", 171, 29);
  b.kernel(graph, 7, "join", 201, 10);
  const RecordedRank recorded = b.build();
  const Replayed r = replay({recorded});
  EXPECT_DOUBLE_EQ(r.at(0, "first").start_us, 160);
  EXPECT_DOUBLE_EQ(r.at(0, "second").start_us, 173);
  EXPECT_DOUBLE_EQ(r.at(0, "branch").start_us, 171);
  EXPECT_DOUBLE_EQ(r.at(0, "join").start_us, 201);
  EXPECT_EQ(r.recorded.facts[0].graph_nodes, 3U);
  // Kept: 3 from first to second, 1 from first to branch, 1 from branch to join.
  const auto& kept = r.recorded.facts[0].kept_delay_us;
  EXPECT_DOUBLE_EQ(kept[static_cast<std::size_t>(EdgeOrigin::stream_order)], 3);
  EXPECT_DOUBLE_EQ(kept[static_cast<std::size_t>(EdgeOrigin::event)], 2);
  // Twice as long: first [160, 180], second from 183, branch [181, 239], join 1 after it.
  const Replayed slower =
      replay({recorded}, {}, [](const Program& p, Costs& c, auto&) { scale_kernels(p, c, 2); });
  EXPECT_DOUBLE_EQ(slower.at(0, "second").start_us, 183);
  EXPECT_DOUBLE_EQ(slower.at(0, "branch").start_us, 181);
  EXPECT_DOUBLE_EQ(slower.at(0, "join").start_us, 240);
}

// A product [20, 500] behind its launch [10, 16], and a copy launched [30, 36] that follows it at 502. No launch shows how
// soon a copy begins on an idle GPU, and 466 us are waiting: 5 us it is. With kernels of no length it begins at 36 + 5.
TEST(GpuStarts, LaunchesThatAllQueuedHaveAUsualDelay) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 1000);
  b.launch(main, 10, 6, 7, "gemm", 20, 480);
  const std::int64_t copy = b.call(main, "cudaMemcpyAsync", 30, 6);
  b.memcpy(copy, 7, "Memcpy DtoD (Device -> Device)", 502, 3);
  const RecordedRank recorded = b.build();
  EXPECT_DOUBLE_EQ(replay({recorded}).at(0, "Memcpy DtoD (Device -> Device)").start_us, 502);
  const Replayed idle =
      replay({recorded}, {}, [](const Program& p, Costs& c, auto&) { scale_kernels(p, c, 0); });
  EXPECT_DOUBLE_EQ(idle.at(0, "Memcpy DtoD (Device -> Device)").start_us, 41);
}

// early [198, 218] begins 10 before long [108, 208] has ended, 90 after its start; after [219, 229] follows the
// one that ends last.
TEST(GpuStarts, KernelsOfOneStreamMayOverlap) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 500);
  b.launch(main, 100, 6, 7, "long", 108, 100);
  b.launch(main, 110, 6, 7, "early", 198, 20);
  b.launch(main, 120, 6, 7, "after", 219, 10);
  const Replayed r = replay({b.build()});
  EXPECT_DOUBLE_EQ(r.at(0, "early").start_us, 198);
  EXPECT_DOUBLE_EQ(r.at(0, "after").start_us, 219);
  EXPECT_EQ(r.recorded.facts[0].overlapping_kernels, 1U);
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].gpu_late_us, 0);
  const Block& block = r.block(0);
  const TaskId early = *r.find(0, "early");
  EXPECT_EQ(block.lanes()[block.lane_codes()[early.index()]].name, "stream 7, overlap 1");
  // 90 of 100: in a scenario that changes the duration of long the distance follows it.
  bool found = false;
  for (std::uint32_t e = block.first_edge()[early.index()]; e < block.first_edge()[early.index() + 1]; ++e) {
    if (block.edge_infos()[e].origin != EdgeOrigin::stream_order) continue;
    found = true;
    EXPECT_FLOAT_EQ(block.edge_infos()[e].share_of_source, 0.9F);
    EXPECT_TRUE(block.edge_infos()[e].kept);
  }
  EXPECT_TRUE(found);
}

// Whole microseconds may show neighbours 2 us over each other: that is rounding.
TEST(GpuStarts, RoundedNeighboursDoNotOverlap) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 500);
  b.launch(main, 100, 6, 7, "first", 108, 100);
  b.launch(main, 110, 6, 7, "second", 206, 20);
  const Replayed r = replay({b.build()});
  EXPECT_EQ(r.recorded.facts[0].overlapping_kernels, 0U);
  EXPECT_DOUBLE_EQ(r.at(0, "second").start_us, 208);
}

// Nothing that the trace shows holds `late`: launched [700, 706] on a free stream, it could begin at 708.
TEST(GpuStarts, LatenessWithoutACauseIsCounted) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 2000);
  add_queue(b, main, 10, 7);
  b.launch(main, 700, 6, 7, "late", 908, 40);
  for (int k = 0; k < 3; ++k) b.launch(main, 1000 + 100 * k, 6, 7, "free", 1008 + 100 * k, 10);
  const Replayed r = replay({b.build()});
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].gpu_late_us, 200);  // 908 - 708
  EXPECT_EQ(r.recorded.facts[0].late_gpu_work, 1U);
  EXPECT_DOUBLE_EQ(r.at(0, "late").start_us, 708);
  EXPECT_THAT(r.recorded.notes,
              ::testing::Not(::testing::Contains(::testing::HasSubstr("kernels are missing"))));
}

// The fifth kernel of a queue begins 300 after the fourth has ended (at 18 + 4 * 51 - 1 = 221), and nothing else
// runs: of it the usual gap of 1 is no lateness.
TEST(GpuStarts, IdleBetweenQueuedKernelsMeansThatKernelsAreMissing) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 2000);
  add_queue(b, main, 10, 7);
  b.launch(main, 50, 6, 7, "thinned", 521, 40);
  const Replayed r = replay({b.build()});
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].gpu_late_us, 299);
  EXPECT_THAT(r.recorded.notes,
              ::testing::Contains("rank 0: kernels are missing in this trace: the GPU is idle for 299 us "
                                  "in 1 places although work was queued"));
}

// The copy to the host, called at 10 and a free one of which begins 8 after its call, begins at 500: behind work
// from before the file. It keeps its place.
TEST(GpuStarts, CopyBehindWorkFromBeforeTheFileKeepsItsStart) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 1000);
  b.memcpy(b.call(main, "cudaMemcpyAsync", 10, 510), 7, "Memcpy DtoH (Device -> Pageable)", 500, 10);
  b.memcpy(b.call(main, "cudaMemcpyAsync", 700, 28), 7, "Memcpy DtoH (Device -> Pageable)", 708, 10);
  const Replayed r = replay({b.build()});
  EXPECT_DOUBLE_EQ(r.at(0, "Memcpy DtoH (Device -> Pageable)").start_us, 500);
  EXPECT_DOUBLE_EQ(r.at(0, "Memcpy DtoH (Device -> Pageable)", 1).start_us, 708);
  EXPECT_EQ(r.recorded.facts[0].kept_starts, 1U);
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].kept_delay_us[kOffset], 500);
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].gpu_late_us, 0);
  EXPECT_DOUBLE_EQ(step_end_us(r), 1000);
}

// A synchronisation [10, 510] before anything is launched.
void add_waiting_step(TraceBuilder& b, int main, int number, double at_us) {
  b.step(main, number, at_us, 1000);
  b.call(main, "cudaDeviceSynchronize", at_us + 10, 500);
  b.launch(main, at_us + 600, 6, 7, "kernel", at_us + 608, 50);
  b.call(main, "cudaDeviceSynchronize", at_us + 800, 3);
}

TEST(GpuStarts, SynchronisationBehindWorkFromBeforeTheFileKeepsItsReturn) {
  TraceBuilder b;
  const int main = b.thread(1);
  add_waiting_step(b, main, 1, 0);
  const Replayed r = replay({b.build()});
  EXPECT_DOUBLE_EQ(r.at(0, "cudaDeviceSynchronize", 0, TaskKind::sync_return).end_us, 510);
  EXPECT_EQ(r.recorded.facts[0].kept_starts, 1U);
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].unexplained_wait_us, 0);
  EXPECT_DOUBLE_EQ(step_end_us(r), 1000);
}

// In the second step of a file the same wait is not explained: 500 - 3.
TEST(GpuStarts, SynchronisationWithoutCauseLaterInTheFileIsNotExplained) {
  TraceBuilder b;
  const int main = b.thread(1);
  add_waiting_step(b, main, 1, 0);
  add_waiting_step(b, main, 2, 1000);
  const Replayed r = replay({b.build()});
  EXPECT_EQ(r.recorded.facts[0].step_number, 2);
  EXPECT_EQ(r.recorded.facts[0].kept_starts, 0U);
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].unexplained_wait_us, 497);
}

// A launch that takes 600 (a module is loaded): its kernel begins 590 into the call. The kernel before it ended 18
// into the call and has nothing to do with that.
TEST(GpuStarts, WorkInsideALongCallIsHeldByTheCall) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 1000);
  b.launch(main, 10, 6, 7, "before", 18, 100);
  b.launch(main, 100, 600, 7, "loaded", 690, 50);
  b.launch(main, 800, 6, 7, "free", 808, 10);
  const Replayed r = replay({b.build()});
  EXPECT_DOUBLE_EQ(r.at(0, "loaded").start_us, 690);
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].gpu_late_us, 0);
}

// Launched in the step behind a queue that was full when it began: each kernel follows the one before.
TEST(GpuStarts, WorkBehindAQueueFromBeforeTheStepFollowsIt) {
  TraceBuilder b;
  const int main = b.thread(1);
  for (int k = 0; k < 4; ++k) b.launch(main, 10 + 10 * k, 6, 7, "queued", 18 + 101 * k, 100);  // to 421
  b.step(main, 1, 100, 900);
  b.launch(main, 110, 6, 7, "inside", 422, 50);
  b.launch(main, 120, 6, 7, "next", 473, 50);
  const RecordedRank recorded = b.build();
  const Replayed r = replay({recorded});
  EXPECT_EQ(r.recorded.facts[0].left_over_kernels, 4U);
  EXPECT_DOUBLE_EQ(r.at(0, "inside").start_us, 322);  // the step begins at 0
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].gpu_late_us, 0);
  // Twice as long: the first of the queue has 18 left, then three of 200 and gaps of 1.
  const Replayed slower =
      replay({recorded}, {}, [](const Program& p, Costs& c, auto&) { scale_kernels(p, c, 2); });
  EXPECT_DOUBLE_EQ(slower.at(0, "inside").start_us, 36 + 3 * 201 + 1);
}

// Main works [0, 100], another thread [50, 300].
TEST(GpuStarts, AWholeFileEndsWithItsLastThread) {
  TraceBuilder b;
  const int main = b.thread(1);
  const int other = b.thread(2);
  b.op(main, "aten::mm", 0, 60);
  b.op(main, "aten::add", 60, 40);
  b.launch(main, 10, 6, 7, "kernel", 18, 10);
  b.op(other, "aten::copy_", 50, 250);
  const Replayed r = replay({b.build()});
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].step_us.length_us(), 300);
  EXPECT_DOUBLE_EQ(step_end_us(r), 300);
}

// Calls of a thread that neither launches nor holds ops do not make the file longer.
TEST(GpuStarts, AWholeFileDoesNotEndWithAThreadThatPolls) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.op(main, "aten::mm", 0, 60);
  b.launch(main, 10, 6, 7, "kernel", 18, 10);
  b.call(b.thread(2), "cudaEventQuery", 500, 2);
  const Replayed r = replay({b.build()});
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].step_us.length_us(), 60);
  EXPECT_DOUBLE_EQ(step_end_us(r), 60);
}

TEST(GpuStarts, AFileWithoutLaunchesWarns) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 500);
  b.kernel(99, 7, "kernel", 108, 50);
  const Replayed r = replay({b.build()});
  EXPECT_DOUBLE_EQ(r.at(0, "kernel").start_us, 108);
  EXPECT_THAT(
      r.recorded.notes,
      ::testing::Contains(::testing::HasSubstr("rank 0: warning: no GPU work of the step has its launch")));
}

// Without launches work runs in the order of its streams: a call that waits does so for what ended meanwhile.
TEST(GpuStarts, WorkWhoseLaunchIsLostKeepsTheOrderOfItsStream) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 500);
  b.kernel(97, 7, "first", 20, 100).kernel(98, 7, "second", 122, 200).kernel(99, 7, "third", 400, 50);
  b.call(main, "cudaDeviceSynchronize", 50, 405);
  const RecordedRank rank = b.build();
  const Replayed as_recorded = replay({rank});
  EXPECT_NEAR(step_end_us(as_recorded), 500, 5);
  EXPECT_EQ(as_recorded.recorded.facts[0].left_over_kernels, 0U);
  EXPECT_DOUBLE_EQ(as_recorded.at(0, "third").start_us, 400);
  const Replayed faster =
      replay({rank}, {}, [](const Program& p, Costs& c, auto&) { test::scale_kernels(p, c, 0.5); });
  EXPECT_DOUBLE_EQ(faster.at(0, "second").start_us, 72);
  EXPECT_NEAR(step_end_us(faster), 325, 5);
}

// What no call in the file launched is told from what one before the step did.
TEST(GpuStarts, WorkWithoutALaunchIsCounted) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.launch(main, 10, 6, 7, "before", 18, 200);
  b.step(main, 1, 100, 500);
  b.launch(main, 150, 6, 7, "launched", 260, 50);
  b.kernel(99, 7, "lost", 320, 30);
  const Replayed r = replay({b.build()});
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].gpu_work_us, 118 + 50 + 30);
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].unlaunched_us, 30);
}

TEST(GpuStarts, TheMedianStepIsTheDefault) {
  TraceBuilder b;
  const int main = b.thread(1);
  const double starts[] = {0, 900, 1410, 1900, 2395};
  const double lengths[] = {900, 510, 490, 495, 300};  // a warm-up, three steps, a cut one
  for (int s = 0; s < 5; ++s) {
    b.step(main, s + 1, starts[s], lengths[s]);
    b.launch(main, starts[s] + 10, 6, 7, "kernel", starts[s] + 20, 50);
  }
  const Replayed r = replay({b.build()});
  EXPECT_EQ(r.recorded.facts[0].step_number, 4);
  EXPECT_THAT(r.recorded.notes, ::testing::Contains("step 4: the median of 5 steps, which take 300.0 us "
                                                    "(step 5) to 900.0 us (step 1)"));
}

TEST(GpuStarts, AnEmptyLastStepIsNotTheDefault) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 500);
  b.launch(main, 100, 6, 7, "kernel", 108, 50);
  b.step(main, 2, 500, 10);
  const RecordedRank recorded = b.build();
  const Replayed r = replay({recorded});
  EXPECT_EQ(r.recorded.facts[0].step_number, 1);
  EXPECT_THAT(r.recorded.notes, ::testing::Contains("step 1 of 2 in the files is replayed"));
}

}  // namespace
}  // namespace stepcast::gpu_starts_test

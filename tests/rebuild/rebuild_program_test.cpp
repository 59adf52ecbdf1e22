// Hand-worked traces: what the rebuilt edges must say.
#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/rebuild/recorded_variants.h"
#include "stepcast/simulate/engine.h"

#include "tests/support/replayed.h"
#include "tests/support/trace_builder.h"

namespace stepcast::rebuild_program_test {
namespace {

using test::TraceBuilder;

using test::replay;
using test::Replayed;
using test::scale_kernels;

// One step of 1000 us: a launch [100, 106] whose kernel runs [108, 208], a second launch [110, 116] whose
// kernel waits for the first and runs [209, 219], a cudaStreamSynchronize [120, 224] and a short one [300,
// 302] with nothing to wait for.
RecordedRank one_synchronisation() {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 1000);
  b.op(main, "aten::mm", 90, 40);
  b.launch(main, 100, 6, 7, "sgemm_a", 108, 100);
  b.launch(main, 110, 6, 7, "sgemm_b", 209, 10);
  b.call(main, "cudaStreamSynchronize", 120, 104);
  b.call(main, "cudaStreamSynchronize", 300, 2);
  return b.build();
}

TEST(RebuildProgram, ReplaysASynchronisationAtItsRecordedTimes) {
  const Replayed r = replay({one_synchronisation()});
  // launch delay 108 - 106 = 2, gap 209 - 208 = 1, return delay 224 - 219 = 5, base cost 2 (the short call)
  EXPECT_DOUBLE_EQ(r.at(0, "sgemm_a").start_us, 108);
  EXPECT_DOUBLE_EQ(r.at(0, "sgemm_b").start_us, 209);
  EXPECT_DOUBLE_EQ(r.at(0, "cudaStreamSynchronize", 0, TaskKind::sync_return).end_us, 224);
  EXPECT_DOUBLE_EQ(r.timeline.end_us(), 1000);
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].recorded_wait_us, 102);  // 104 - 2, and 2 - 2
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].unexplained_wait_us, 0);
}

// A step that synchronises once: the kernel runs [20, 520] and the call [30, 526], 6 us behind it. With kernels of half
// the length the kernel ends at 270 and the call at 276, 250 us earlier; with none it takes 6 us: [30, 36].
TEST(RebuildProgram, OneSynchronisationAStepWaitsForItsKernels) {
  for (const char* name : {"cudaDeviceSynchronize", "cudaStreamSynchronize", "hipDeviceSynchronize"}) {
    SCOPED_TRACE(name);
    TraceBuilder b;
    const int main = b.thread(1);
    b.step(main, 1, 0, 1000);
    b.op(main, "aten::mm", 5, 15);
    b.launch(main, 10, 6, 7, "sgemm", 20, 500);
    b.call(main, name, 30, 496);
    const RecordedRank rank = b.build();
    const auto step_us = [&](double factor) {
      const Replayed r =
          replay({rank}, {}, [&](const Program& p, Costs& c, auto&) { scale_kernels(p, c, factor); });
      return r.timeline.lane_free_us(RankClassId{0})[0];
    };
    EXPECT_DOUBLE_EQ(step_us(1), 1000);
    EXPECT_DOUBLE_EQ(step_us(0.5), 750);
    EXPECT_DOUBLE_EQ(step_us(0), 510);
  }
}

// Of two steps the second, which holds less.
TEST(RebuildProgram, KnowsTheLargestTotalsOfTheAllocatorInTheStep) {
  TraceBuilder b;
  const int main = b.thread(1);
  for (int step = 1; step <= 2; ++step) {
    b.step(main, step, 100.0 * step, 98);
    b.launch(main, 100.0 * step + 10, 5, 7, "gemm", 100.0 * step + 20, 30);
  }
  b.allocator(120, 900, 1000).allocator(198.5, 100, 1000).allocator(210, 300, 1000).allocator(230, 200, 1024);
  const Replayed r = replay({b.build()});
  ASSERT_TRUE(r.recorded.facts[0].memory);
  EXPECT_EQ(r.recorded.facts[0].memory->allocated_bytes, 300);
  EXPECT_EQ(r.recorded.facts[0].memory->reserved_bytes, 1024);
  EXPECT_FALSE(replay({one_synchronisation()}).recorded.facts[0].memory);
}

TEST(RebuildProgram, WaitsFollowTheKernelsNotTheRecording) {
  // Kernels twice as long: sgemm_a [108, 308], sgemm_b [309, 329], return 334 instead of 224: the step ends
  // 110 later.
  const Replayed r =
      replay({one_synchronisation()}, {}, [](const Program& p, Costs& c, auto&) { scale_kernels(p, c, 2); });
  EXPECT_DOUBLE_EQ(r.at(0, "sgemm_b").end_us, 329);
  EXPECT_DOUBLE_EQ(r.at(0, "cudaStreamSynchronize", 0, TaskKind::sync_return).end_us, 334);
  EXPECT_DOUBLE_EQ(r.timeline.end_us(), 1110);
}

TEST(RebuildProgram, NaiveReplayLosesTheWait) {
  // Cut to its base cost of 2 the call ends at 122 instead of 224: the step is 102 shorter.
  const Replayed full = replay({one_synchronisation()});
  const Result<RecordedProgram> naive = without_gpu_dependencies(full.recorded, RankClassId{0});
  ASSERT_TRUE(naive.ok()) << naive.error().message();
  const auto plan = Plan::compile(naive->program);
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  const auto timeline = plan->simulate(Costs{naive->program}, {.start_offset_us = naive->start_offset_us});
  ASSERT_TRUE(timeline.ok()) << timeline.error().message();
  EXPECT_DOUBLE_EQ(timeline->lane_free_us(RankClassId{0})[0], 898);
  EXPECT_EQ(naive->facts[0].edge_count[static_cast<std::size_t>(EdgeOrigin::synchronization)], 0U);
}

// A blocking copy to the host: call [50, 180], the kernel before it [20, 160], the copy [162, 170], return 10
// after its end. A free one at [400, 418] shows its own costs: the copy starts 8 after the call's start, 400
// + 8 = 408, and ends at 410, return 8 later.
TEST(RebuildProgram, BlockingCopyReturnsAfterItsCopy) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 500);
  b.launch(main, 10, 6, 7, "sgemm_a", 18, 142);
  b.memcpy(b.call(main, "cudaMemcpyAsync", 50, 130), 7, "Memcpy DtoH (Device -> Pageable)", 162, 8);
  b.memcpy(b.call(main, "cudaMemcpyAsync", 400, 18), 7, "Memcpy DtoH (Device -> Pageable)", 408, 2);
  const RecordedRank recorded = b.build();
  const Replayed r = replay({recorded});
  EXPECT_DOUBLE_EQ(r.at(0, "Memcpy DtoH (Device -> Pageable)").start_us, 162);
  EXPECT_DOUBLE_EQ(r.at(0, "cudaMemcpyAsync", 0, TaskKind::sync_return).end_us, 180);
  // The kernel 100 longer moves the copy and the return by 100.
  const Replayed slower = replay({recorded}, {}, [](const Program& p, Costs& c, auto&) {
    for (std::size_t t = 0; t < p.blocks()[0].task_count(); ++t)
      if (p.blocks()[0].tasks()[t].kind == TaskKind::kernel) c.duration_us(BlockId{0})[t] += 100;
  });
  EXPECT_DOUBLE_EQ(slower.at(0, "cudaMemcpyAsync", 0, TaskKind::sync_return).end_us, 280);
}

// Two ranks, rank 1 begins 300 later. Both launch an all-reduce [20, 26] after their start whose kernel
// starts 2 after the launch: rank 0 at 28, rank 1 at 328; transfer 50 (rank 1's duration), so both end at
// 378. Rank 0's call to synchronise [40, 383] returns 5 later.
std::vector<RecordedRank> two_ranks() {
  std::vector<RecordedRank> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    const double s = rank * 300.0;
    TraceBuilder b{rank, 2};
    const int main = b.thread(1);
    b.step(main, 1, s, 1000 - s);
    b.op(main, "record_param_comms", s + 15, 20);
    b.launch(main, s + 20, 6, 84, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", s + 28,
             378 - (s + 28));
    b.call(main, "cudaDeviceSynchronize", s + 40, 383 - (s + 40));
    b.call(main, "cudaDeviceSynchronize", 900, 3);
    ranks.push_back(b.build());
  }
  return ranks;
}

TEST(RebuildProgram, CollectiveEndsTogetherAfterTheLastArrival) {
  const std::string_view kernel = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)";
  const Replayed r = replay(two_ranks());
  ASSERT_EQ(r.recorded.program.collectives().size(), 1u);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_DOUBLE_EQ(r.at(rank, kernel).end_us, 378);
    EXPECT_DOUBLE_EQ(r.at(rank, "cudaDeviceSynchronize", 0, TaskKind::sync_return).end_us, 383);
  }
  // Rank 1 another 100 late: both end 100 later, rank 0 waits 100 longer, rank 1 as long as before.
  const Replayed late = replay(
      two_ranks(), {}, [](const Program&, Costs&, std::vector<double>& offsets) { offsets[1] += 100; });
  EXPECT_DOUBLE_EQ(late.at(0, kernel).end_us, 478);
  EXPECT_DOUBLE_EQ(late.at(1, kernel).end_us, 478);
  EXPECT_DOUBLE_EQ(late.at(0, kernel).length_us(), 450);
  EXPECT_DOUBLE_EQ(late.at(1, kernel).length_us(), 50);
}

// Ranks of a job without metadata: NCCL's kernel for transfers from one to another runs their all-to-all as well.
TEST(RebuildProgram, SendReceiveOfMoreThanTwoRanksIsAnAllToAll) {
  for (const int size : {2, 3}) {
    std::vector<RecordedRank> ranks;
    for (int rank = 0; rank < size; ++rank) {
      TraceBuilder b{rank, size};
      const int main = b.thread(1);
      b.step(main, 1, 0, 1000);
      const double at = 100 + 100 * rank;
      b.launch(main, at, 6, 84, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", at + 8, 492 - at);
      b.call(main, "cudaDeviceSynchronize", at + 10, 500 - at);
      ranks.push_back(b.build());
    }
    const Replayed r = replay(ranks);
    ASSERT_EQ(r.recorded.program.collectives().size(), 1u);
    EXPECT_EQ(r.recorded.program.collectives()[0].op,
              size == 2 ? CollectiveOp::send_receive : CollectiveOp::all_to_all);
  }
}

// Launches of 6 us but for the first, of 200; a graph launch of 60; and a wait of 300, which is none.
TEST(RebuildProgram, NamesCallsThatAreSlowOnce) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 1000);
  b.op(main, "aten::mm", 5, 900);
  b.launch(main, 10, 200, 7, "sgemm", 212, 10);
  for (int k = 0; k < 4; ++k) b.launch(main, 220 + 20 * k, 6, 7, "sgemm", 228 + 20 * k, 5);
  b.kernel(b.call(main, "cudaGraphLaunch", 400, 60), 7, "node", 462, 300);
  b.call(main, "cudaDeviceSynchronize", 470, 300);
  EXPECT_THAT(
      replay({b.build()}).recorded.notes,
      ::testing::Contains("rank 0: 2 single slow calls take 260 us of the step: cudaLaunchKernel 200 us "
                          "(first use of a kernel: its code is loaded then), cudaGraphLaunch 60.0 us "
                          "(graph launch)"));
}

TEST(RebuildProgram, NotesThreadsThatPollOnceAndLast) {
  std::vector<RecordedRank> ranks = two_ranks();
  for (RecordedRank& rank : ranks) {
    rank.threads.push_back({.pid = 1, .tid = 99, .name = {}});
    RuntimeCall poll = rank.runtime_calls.front();
    poll.thread = ThreadId{rank.threads.size() - 1};
    poll.correlation = -1;
    poll.name = rank.names.intern("cudaEventQuery");
    poll.start = rank.cpu_ops.front().start + Nanoseconds{600'000};
    rank.runtime_calls.push_back(poll);
  }
  const Replayed r = replay(ranks);
  ASSERT_FALSE(r.recorded.notes.empty());
  EXPECT_EQ(r.recorded.notes.back(), "2 calls of threads that only poll were left out (rank 0-1)");
}

TEST(RebuildProgram, OrderOfFilesChangesNothing) {
  std::vector<RecordedRank> ranks = two_ranks();
  const Replayed a = replay(ranks);
  std::swap(ranks[0], ranks[1]);
  const Replayed b = replay(ranks);
  EXPECT_DOUBLE_EQ(a.timeline.rank_end_us(RankClassId{0}), b.timeline.rank_end_us(RankClassId{0}));
  EXPECT_DOUBLE_EQ(a.timeline.rank_end_us(RankClassId{1}), b.timeline.rank_end_us(RankClassId{1}));
}

// The clock of rank 1's host is 5,000 ahead: all its times are 5,000 later, and its three collectives end
// 5,000 after rank 0's.
TEST(RebuildProgram, MovesClocksThatAreApart) {
  const std::string_view kernel = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)";
  std::vector<RecordedRank> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    const double clock = rank * 5000.0;
    const double late = rank * 40.0;  // rank 1 launches 40 later
    TraceBuilder b{rank, 2};
    const int main = b.thread(1);
    b.step(main, 1, clock, 1000);
    for (int k = 0; k < 3; ++k) {
      const double t = 100 + 200 * k;
      b.launch(main, clock + t + late, 6, 84, kernel, clock + t + 8 + late,
               142 - late);  // all end at t + 150
    }
    ranks.push_back(b.build());
  }
  const Replayed r = replay(ranks);
  EXPECT_THAT(
      r.recorded.notes,
      ::testing::Contains(
          "rank 1: clock shifted by -5000.0 us, so that its collectives end together with those of rank 0"));
  EXPECT_EQ(r.recorded.program.collectives().size(), 3u);
  EXPECT_DOUBLE_EQ(r.recorded.start_offset_us[1], 0);
  EXPECT_DOUBLE_EQ(r.at(0, kernel, 2).end_us, 650);
  EXPECT_DOUBLE_EQ(r.at(1, kernel, 2).end_us, 650);
}

// 20 us are more than ends of one clock scatter by, two are not.
TEST(RebuildProgram, MovesClocksThatAreALittleApart) {
  const std::string_view kernel = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)";
  for (const double apart : {2.0, 20.0}) {
    std::vector<RecordedRank> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      const double clock = rank * apart;
      TraceBuilder b{rank, 2};
      const int main = b.thread(1);
      b.step(main, 1, clock, 1000);
      for (int k = 0; k < 3; ++k)
        b.launch(main, clock + 100 + 200 * k, 6, 84, kernel, clock + 108 + 200 * k, 142);
      ranks.push_back(b.build());
    }
    const Replayed r = replay(ranks);
    EXPECT_DOUBLE_EQ(r.recorded.start_offset_us[1], apart > 2 ? 0 : apart);
    EXPECT_DOUBLE_EQ(r.recorded.clock_uncertainty_us, 2);
  }
}

// One communication stream serves two groups, {0, 1} and {2, 3}, and no metadata says so: rank 2 and 3 run
// one collective more. Who leaves together belongs together.
TEST(RebuildProgram, JoinsGroupsOfOneStreamByTheirTimes) {
  const std::string_view kernel = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)";
  std::vector<RecordedRank> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    TraceBuilder b{rank, 4};
    const int main = b.thread(1);
    b.step(main, 1, 0, 2000);
    const bool second = rank >= 2;
    for (int k = 0; k < (second ? 3 : 2); ++k) {
      const double t = 100 + 400 * k + (second ? 170 : 0);
      const double late = rank % 2 == 1 ? 30 : 0;
      b.launch(main, t + late, 6, 84, kernel, t + 8 + late, 142 - late);
    }
    ranks.push_back(b.build());
  }
  const Replayed r = replay(ranks);
  ASSERT_EQ(r.recorded.program.collectives().size(), 5u);
  for (const Collective& c : r.recorded.program.collectives()) {
    ASSERT_EQ(c.members.size(), 2u);
    EXPECT_EQ(c.members[0].rank_class.index() / 2, c.members[1].rank_class.index() / 2);
  }
}

// The main thread calls backward at 100 and waits; the autograd thread works [200, 600] and main goes on at
// 640.
TEST(RebuildProgram, HandsOverToTheAutogradThreadAndBack) {
  TraceBuilder b;
  const int main = b.thread(1);
  const int autograd = b.thread(2);
  b.step(main, 1, 0, 1000);
  b.op(main, "aten::sum", 50, 50);
  b.annotation(main, "## backward ##", 100, 560);
  b.op(autograd, "autograd::engine::evaluate_function: SumBackward1", 200, 400);
  b.launch(autograd, 300, 10, 7, "elementwise_kernel", 312, 8);
  b.op(main, "aten::add", 640, 20);
  const RecordedRank recorded = b.build();
  const Replayed r = replay({recorded});
  EXPECT_DOUBLE_EQ(r.at(0, "aten::add").start_us, 640);
  // wake: 105 -> 200 (main's own 5 us at the begin of its gap), join: 600 -> 640
  EXPECT_DOUBLE_EQ(r.recorded.facts[0].kept_delay_us[static_cast<std::size_t>(EdgeOrigin::thread_handoff)],
                   95 + 40);
  // A launch call 70 longer on the autograd thread delays main by 70.
  const Replayed slower = replay({recorded}, {}, [&](const Program& p, Costs& c, auto&) {
    for (std::size_t t = 0; t < p.blocks()[0].task_count(); ++t)
      if (p.blocks()[0].tasks()[t].kind == TaskKind::cpu_call) c.duration_us(BlockId{0})[t] += 70;
  });
  EXPECT_DOUBLE_EQ(slower.at(0, "aten::add").start_us, 710);
}

// Stream 8 waits for stream 7 by a cuda_sync record: its kernel, launched at 60, starts 2 after the other's
// end at 220.
TEST(RebuildProgram, EventWaitFromItsRecord) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 500);
  b.launch(main, 10, 6, 7, "producer", 20, 200);
  const std::int64_t record = b.call(main, "cudaEventRecord", 30, 2);
  const std::int64_t wait = b.call(main, "cudaStreamWaitEvent", 40, 2);
  b.stream_wait(wait, 8, 7, record);
  b.launch(main, 60, 6, 8, "consumer", 222, 50);
  const RecordedRank recorded = b.build();
  const Replayed r =
      replay({recorded}, {}, [](const Program& p, Costs& c, auto&) { scale_kernels(p, c, 2); });
  // producer [20, 420], delay 2
  EXPECT_DOUBLE_EQ(r.at(0, "consumer").start_us, 422);
  EXPECT_EQ(r.recorded.facts[0].edge_count[static_cast<std::size_t>(EdgeOrigin::event)], 1u);
  EXPECT_EQ(r.recorded.facts[0].inferred_edge_count[static_cast<std::size_t>(EdgeOrigin::event)], 0u);
}

TEST(RebuildProgram, LeftOverWorkKeepsItsOffset) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.launch(main, 10, 6, 7, "before", 150, 100);  // launched before the step, runs into it
  b.step(main, 1, 100, 400);
  b.launch(main, 120, 6, 7, "inside", 251, 10);
  const Replayed r = replay({b.build()});
  EXPECT_EQ(r.recorded.facts[0].left_over_kernels, 1u);
  EXPECT_DOUBLE_EQ(r.at(0, "before").start_us, 50);  // the step begins at 0
  EXPECT_DOUBLE_EQ(r.at(0, "inside").start_us, 151);
}

TEST(RebuildProgram, RefusesWhatDoesNotFit) {
  const auto message = [](const std::vector<RecordedRank>& ranks, const RebuildOptions& options = {}) {
    std::vector<RecordedInput> input;
    for (const RecordedRank& r : ranks) input.push_back({&r, nullptr});
    const auto result = rebuild_program(input, options);
    return result.ok() ? std::string{} : result.error().message();
  };
  std::vector<RecordedRank> ranks = two_ranks();
  ranks[1].rank = 0;
  EXPECT_EQ(message(ranks),
            "rank1.json: distributedInfo.rank: found rank 0, the same as rank0.json, expected one file per "
            "rank; give "
            "each rank once");
  ranks[1].rank = 2;
  EXPECT_THAT(message(ranks),
              ::testing::HasSubstr("found rank 2 of a world of 2, expected 0 <= rank < world_size"));
  RebuildOptions step;
  step.step = 7;
  EXPECT_THAT(
      message(two_ranks(), step),
      ::testing::HasSubstr("ProfilerStep#7: there is no such step, found steps 1; choose one of them"));
  TraceBuilder empty;
  empty.thread(1);
  EXPECT_THAT(message({empty.build()}), ::testing::HasSubstr("found no operators and no GPU work"));
}

// Every edge says what sort of delay it has; what is not kept from the record is the constant of its sort.
TEST(RebuildProgram, EdgesNameTheirDelays) {
  const Replayed r = replay({one_synchronisation()});
  std::map<DelayClass, double> learned;
  for (const LearnedConstant& constant : r.recorded.constants) learned[constant.delay] = constant.value_us;
  std::map<std::string, double> named;
  const Block& block = r.block(0);
  for (std::uint32_t e = 0; e < block.edge_count(); ++e) {
    const EdgeInfo& info = block.edge_infos()[e];
    if (!info.delay.valid()) continue;
    const DelayClass& delay = r.recorded.delays.of(info.delay);
    named[describe(delay, r.recorded.program.names)] = block.delay_us()[e];
    EXPECT_EQ(block.delay_us()[e], learned.at(delay)) << describe(delay, r.recorded.program.names);
  }
  // As in the test above: 2, 1 and 5 us.
  EXPECT_THAT(named, ::testing::ElementsAre(
                         ::testing::Pair("launch delay from the call's end, cudaLaunchKernel -> kernel", 2.0),
                         ::testing::Pair("return delay, stream synchronisation", 5.0),
                         ::testing::Pair("stream gap, kernel -> kernel", 1.0)));
}

}  // namespace
}  // namespace stepcast::rebuild_program_test

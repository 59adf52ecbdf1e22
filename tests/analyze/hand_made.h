// Two small Programs whose every time can be worked out by hand, for the analyses.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/program/program.h"
#include "stepcast/simulate/engine.h"

namespace stepcast::fixtures {

// One rank: a CPU thread, a compute stream and a copy stream.
//
//   cpu        |L1 0-4|L2 4-8|L3 8-10|E 10-11|                         R 30-33|
//   stream 7         | gemm 6-16 |          | elementwise 21-26 |
//   stream 24                | copy 10-20 |
//
// Launch delay 2 from the call's end. The element-wise kernel is launched by 12 but waits for the copy
// (event, delay 1). R returns 4 after the element-wise kernel ended.
struct OneRank {
  static constexpr std::size_t kL1 = 0, kGemm = 1, kL2 = 2, kCopy = 3, kL3 = 4, kElementwise = 5, kEnter = 6,
                               kReturn = 7;
  Program program;
  OneRank() {
    BlockBuilder b{"step"};
    const LaneId cpu = b.add_lane({LaneKind::cpu_thread, "main thread"});
    const LaneId s7 = b.add_lane({LaneKind::gpu_stream, "stream 7", 7});
    const LaneId s24 = b.add_lane({LaneKind::gpu_stream, "stream 24", 24});
    const StackId step = program.stacks.push(StackId{}, program.names.intern("ProfilerStep#1"));
    const StackId linear = program.stacks.push(step, program.names.intern("aten::linear"));
    const StackId mm = program.stacks.push(linear, program.names.intern("aten::mm"));
    const StackId relu = program.stacks.push(step, program.names.intern("aten::relu"));
    const auto name = [&](const char* text) { return program.names.intern(text); };
    const auto us = [](double time) { return Microseconds{time}; };
    const TaskId l1 =
        b.add_task(cpu, {.kind = TaskKind::cpu_call, .name = name("cudaLaunchKernel"), .stack = mm}, us(4));
    const TaskId gemm = b.add_task(
        s7, {.kind = TaskKind::kernel, .kernel_class = KernelClass::gemm, .name = name("sgemm"), .stack = mm},
        us(10));
    const TaskId l2 = b.add_task(
        cpu, {.kind = TaskKind::cpu_call, .name = name("cudaMemcpyAsync"), .stack = linear}, us(4));
    const TaskId copy = b.add_task(s24,
                                   {.kind = TaskKind::memcpy,
                                    .kernel_class = KernelClass::memory,
                                    .name = name("Memcpy HtoD"),
                                    .stack = linear},
                                   us(10));
    const TaskId l3 =
        b.add_task(cpu, {.kind = TaskKind::cpu_call, .name = name("cudaLaunchKernel"), .stack = relu}, us(2));
    const TaskId elementwise = b.add_task(s7,
                                          {.kind = TaskKind::kernel,
                                           .kernel_class = KernelClass::elementwise,
                                           .name = name("relu"),
                                           .stack = relu},
                                          us(5));
    const TaskId enter =
        b.add_task(cpu, {.kind = TaskKind::sync_enter, .name = name("cudaStreamSynchronize")}, us(1));
    const TaskId leave =
        b.add_task(cpu, {.kind = TaskKind::sync_return, .name = name("cudaStreamSynchronize")}, us(3));
    static_cast<void>(enter);
    b.add_edge(Moment::end_of(l1), gemm, us(2), {.origin = EdgeOrigin::launch});
    b.add_edge(Moment::end_of(l2), copy, us(2), {.origin = EdgeOrigin::launch});
    b.add_edge(Moment::end_of(l3), elementwise, us(2), {.origin = EdgeOrigin::launch});
    b.add_edge(Moment::end_of(copy), elementwise, us(1), {.origin = EdgeOrigin::event, .inferred = true});
    b.add_edge(Moment::end_of(elementwise), leave, us(4), {.origin = EdgeOrigin::synchronization});
    Result<Block> block = std::move(b).finish();
    EXPECT_TRUE(block.ok()) << block.error().message();
    const std::vector<Lane> lanes{block->lanes().begin(), block->lanes().end()};
    RankClass rank;
    rank.name = "rank 0";
    rank.lanes = lanes;
    const RankClassId c = program.add_rank_class(std::move(rank));
    program.add_instance(c, {.block = program.add_block(std::move(block).value())});
  }
};

// Two ranks that meet in one collective of 8 us.
//
//   rank 0  cpu        |L 0-2|                    rank 1  cpu       |L 0-9|
//           stream 7   | gemm 1-11 |
//           stream 84     |waits 3-10|transfer 10-18|     stream 84          |transfer 10-18|
//
// Launch delay 1: from the end of L for the collective, from its start for the kernel.
struct TwoRanks {
  static constexpr std::size_t kLaunch = 0, kGemm = 1, kMeet0 = 2, kMeet1 = 1;  // flat numbers
  Program program;
  TwoRanks() {
    const auto us = [](double time) { return Microseconds{time}; };
    std::vector<CollectiveMember> members;
    for (int r = 0; r < 2; ++r) {
      BlockBuilder b{"step of rank " + std::to_string(r)};
      const LaneId cpu = b.add_lane({LaneKind::cpu_thread, "main thread"});
      const LaneId s7 = b.add_lane({LaneKind::gpu_stream, "stream 7", 7});
      const LaneId s84 = b.add_lane({LaneKind::gpu_stream, "stream 84", 84});
      const TaskId launch =
          b.add_task(cpu, {.kind = TaskKind::cpu_call, .name = program.names.intern("cudaLaunchKernel")},
                     us(r == 0 ? 2 : 9));
      if (r == 0) {
        const TaskId gemm = b.add_task(s7,
                                       {.kind = TaskKind::kernel,
                                        .kernel_class = KernelClass::gemm,
                                        .name = program.names.intern("sgemm")},
                                       us(10));
        b.add_edge(Moment::start_of(launch), gemm, us(1), {.origin = EdgeOrigin::launch});
      }
      const TaskId meet = b.add_task(s84,
                                     {.kind = TaskKind::collective,
                                      .kernel_class = KernelClass::communication,
                                      .name = program.names.intern("all_reduce")},
                                     us(8));
      b.add_edge(Moment::end_of(launch), meet, us(1), {.origin = EdgeOrigin::launch});
      Result<Block> block = std::move(b).finish();
      EXPECT_TRUE(block.ok()) << block.error().message();
      RankClass rank;
      rank.name = "rank " + std::to_string(r);
      rank.lanes.assign(block->lanes().begin(), block->lanes().end());
      const RankClassId c = program.add_rank_class(std::move(rank));
      const InstanceId i = program.add_instance(c, {.block = program.add_block(std::move(block).value())});
      members.push_back({c, i, meet});
    }
    Collective collective;
    collective.op = CollectiveOp::all_reduce;
    collective.name = program.names.intern("all_reduce");
    collective.message_bytes = 4096;
    collective.members = members;
    program.add_collective(std::move(collective));
  }
};

}  // namespace stepcast::fixtures

// A recorded step of two ranks whose scenarios can be worked out by hand.
//
//   rank 0  cpu |host 0-10|                         rank 1  cpu |host 0-20|
//           gpu           |kernel 10-40|waits|50-55|         gpu           |kernel 20-50|50-55|
//
// Both steps begin at 0 and end with the collective, at 55.
#pragma once

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/rebuild/recorded_program.h"

namespace stepcast::test {

inline RecordedProgram two_recorded_ranks() {
  RecordedProgram recorded;
  Program& program = recorded.program;
  const auto us = [](double time) { return Microseconds{time}; };
  const NameId op = program.names.intern("aten::mm");
  const StackId stack = program.stacks.push(StackId{}, op);
  const WorkId host = program.works.intern(HostWork{.type = OverheadType::t2, .op = op});
  std::vector<CollectiveMember> members;
  for (const int r : {0, 1}) {
    BlockBuilder b{r == 0 ? "rank 0" : "rank 1"};
    const LaneId cpu = b.add_lane({LaneKind::cpu_thread, "main thread"});
    const LaneId gpu = b.add_lane({LaneKind::gpu_stream, "stream 7", 7});
    const double host_us = r == 0 ? 10 : 20;
    const TaskId launch =
        b.add_task(cpu, {.kind = TaskKind::cpu_call, .name = op, .stack = stack, .work = host}, us(host_us));
    const TaskId kernel = b.add_task(
        gpu, {.kind = TaskKind::kernel, .kernel_class = KernelClass::gemm, .name = op, .stack = stack},
        us(30));
    const TaskId meet = b.add_task(
        gpu, {.kind = TaskKind::collective, .kernel_class = KernelClass::communication, .name = op}, us(5));
    b.add_edge(Moment::end_of(launch), kernel, us(0), {.origin = EdgeOrigin::launch});
    Result<Block> block = std::move(b).finish();
    EXPECT_TRUE(block.ok()) << block.error().message();
    RankClass rank;
    rank.name = r == 0 ? "rank 0" : "rank 1";
    rank.recorded_rank = r;
    rank.lanes.assign(block->lanes().begin(), block->lanes().end());
    const RankClassId c = program.add_rank_class(std::move(rank));
    const InstanceId i = program.add_instance(c, {.block = program.add_block(std::move(block).value())});
    members.push_back({c, i, meet});
    const double end = host_us + 30;
    recorded.measured.push_back({{0, host_us}, {host_us, end}, {end, 55}});
    recorded.start_offset_us.push_back(0);
    RecordedStepFacts& facts = recorded.facts.emplace_back();
    facts.rank = r;
    facts.step_number = 1;
    facts.step_us = {0, 55};
    facts.gpu_window_end_us = 55;
    facts.step_end_task = meet;
  }
  Collective collective;
  collective.op = CollectiveOp::all_reduce;
  collective.members = std::move(members);
  program.add_collective(std::move(collective));
  return recorded;
}

}  // namespace stepcast::test

#include "stepcast/predict/interference_sweep.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

// Two ranks, each a kernel of 100 us on stream 0 and, on stream 1, work of `before_us` and then a transfer of
// `transfer_us` with the other.
Program two_ranks(double before_us, double transfer_us) {
  Program program;
  const NameId name = program.names.intern("sgemm");
  Collective collective;
  for (int rank = 0; rank < 2; ++rank) {
    BlockBuilder b{"block"};
    const LaneId compute = b.add_lane({LaneKind::gpu_stream, "compute", -1});
    const LaneId network = b.add_lane({LaneKind::gpu_stream, "network", -1});
    TaskInfo info;
    info.kernel_class = KernelClass::gemm;
    info.name = name;
    b.add_task(compute, info, Microseconds{100});
    TaskInfo other;
    other.kind = TaskKind::memset;
    other.kernel_class = KernelClass::memory;
    b.add_task(network, other, Microseconds{before_us});
    TaskInfo transfer;
    transfer.kind = TaskKind::collective;
    transfer.kernel_class = KernelClass::communication;
    const TaskId member = b.add_task(network, transfer, Microseconds{transfer_us});
    auto finished = std::move(b).finish_with_map();
    EXPECT_TRUE(finished.ok());
    const BlockId block = program.add_block(std::move(finished->block));
    RankClass rank_class;
    rank_class.name = "rank";
    rank_class.lanes = {{LaneKind::gpu_stream, "compute", -1}, {LaneKind::gpu_stream, "network", -1}};
    const RankClassId c = program.add_rank_class(std::move(rank_class));
    BlockInstance instance;
    instance.block = block;
    const InstanceId i = program.add_instance(c, std::move(instance));
    collective.members.push_back({c, i, finished->new_id[member.index()]});
  }
  program.add_collective(std::move(collective));
  return program;
}

// GEMMs beside communication take 1.5 times as long.
Interference half_slower() {
  Platform platform;
  ModelRecord model;
  model.name = "overlap_slowdown/gemm";
  model.kind = "overlap_slowdown";
  model.parameters = JsonValue::object();
  model.parameters.add("class", JsonValue{"gemm"});
  model.parameters.add("slowdown_p10", JsonValue{0.4});
  model.parameters.add("slowdown_p50", JsonValue{0.5});
  model.parameters.add("slowdown_p90", JsonValue{0.6});
  platform.set(model);
  return Interference{platform};
}

InterferenceResult run(const Program& program, int max_sweeps = 4) {
  const auto plan = Plan::compile(program);
  EXPECT_TRUE(plan.ok());
  InterferenceOptions options;
  options.max_sweeps = max_sweeps;
  auto result = simulate_with_interference(program, *plan, Costs{program}, half_slower(), {}, options);
  EXPECT_TRUE(result.ok());
  return std::move(*result);
}

double kernel_length(const InterferenceResult& r) {
  return r.timeline.instance(RankClassId{0}, 0, InstanceId{0})[0].length_us();
}

// 40 us alone do 40 us of work, the 60 us of the transfer 60 / 1.5 = 40, and 20 are left: 120 us.
TEST(InterferenceSweep, StretchesThePartThatHasCompany) {
  const InterferenceResult r = run(two_ranks(40, 60));
  EXPECT_NEAR(kernel_length(r), 120, 1e-9);
  EXPECT_NEAR(r.residual_us, 0, 1e-9);
  EXPECT_EQ(r.stretched, 2u);
  EXPECT_LE(r.sweeps, 4);
}

// Company from begin to end: 150 us.
TEST(InterferenceSweep, FullCompanyTakesTheFactor) {
  EXPECT_NEAR(kernel_length(run(two_ranks(0, 1000))), 150, 1e-9);
}

// The transfer begins after the kernel: nothing changes, and one sweep is enough.
TEST(InterferenceSweep, NoCompanyChangesNothing) {
  const InterferenceResult r = run(two_ranks(100, 50));
  EXPECT_EQ(kernel_length(r), 100);
  EXPECT_EQ(r.sweeps, 1);
  EXPECT_EQ(r.stretched, 0u);
}

// A bound of one sweep leaves the durations as they were and says how far they are off: 20 us.
TEST(InterferenceSweep, ReportsWhatIsLeft) {
  const InterferenceResult r = run(two_ranks(40, 60), 1);
  EXPECT_EQ(kernel_length(r), 100);
  EXPECT_NEAR(r.residual_us, 20, 1e-9);
}

}  // namespace
}  // namespace stepcast

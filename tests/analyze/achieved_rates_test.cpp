#include "stepcast/analyze/achieved_rates.h"

#include <vector>

#include <gtest/gtest.h>

#include "stepcast/operation/operation.h"
#include "stepcast/simulate/engine.h"

namespace stepcast::achieved_rates_test {
namespace {

Platform two_nodes_of_two() {
  Platform p;
  p.name = "hand-made";
  p.device.memory_bandwidth = BytesPerSecond{900e9};
  p.device.matrix_peak[static_cast<std::size_t>(DType::fp16)] = FlopsPerSecond{125e12};
  p.node.gpus_per_node = 2;
  p.node.intra.kind = LinkKind::nvlink_mesh;
  p.node.intra.bandwidth_per_gpu = BytesPerSecond{150e9};
  p.node.network = Network{};
  p.node.network->kind = "RoCE";
  p.node.network->nics_per_node = 1;
  p.node.network->bandwidth_per_nic = BytesPerSecond{25e9};
  return p;
}

ForecastCollective collective(const char* group, double bytes, double transfer_us,
                              std::vector<std::uint32_t> classes) {
  ForecastCollective c;
  c.group = group;
  c.operation = "all_reduce";
  c.message_bytes = bytes;
  c.transfer_us = transfer_us;
  c.total_wait_us = 40;
  for (const std::uint32_t m : classes) c.members.push_back({.rank_class = m});
  return c;
}

// Bus bandwidth of an all-reduce: 2 (n - 1) / n x bytes / time.
//   "tensor", ranks 0 and 1 of one node: 1 x 1 MB in 100 us and 1 x 3 MB in 100 us: 4 MB / 200 us = 20 GB/s; the
//             larger message 30 GB/s
//   "data", ranks 0 and 2 of two nodes: 1 MB in 500 us: 2 GB/s of 25 / 2 GB/s a GPU
TEST(TrafficByGroup, StandsBesideTheLinkThatItUses) {
  Forecast f;
  for (int rank = 0; rank < 3; ++rank) f.classes.push_back({.rank = rank});
  f.collectives = {collective("tensor", 1e6, 100, {0, 1}), collective("tensor", 3e6, 100, {0, 1}),
                   collective("data", 1e6, 500, {0, 2}), collective("alone", 1e6, 10, {0})};
  const Platform platform = two_nodes_of_two();
  const std::vector<GroupTraffic> traffic = traffic_by_group(f, &platform);
  ASSERT_EQ(traffic.size(), 2U);
  const GroupTraffic &data = traffic[0], &tensor = traffic[1];
  EXPECT_EQ(tensor.group, "tensor");
  EXPECT_EQ(tensor.n, 2U);
  EXPECT_DOUBLE_EQ(tensor.bus_GBps.value(), 20);
  EXPECT_DOUBLE_EQ(tensor.largest_bus_GBps.value(), 30);
  EXPECT_DOUBLE_EQ(tensor.link_GBps.value(), 150);
  EXPECT_EQ(tensor.link, "NVLink mesh");
  EXPECT_DOUBLE_EQ(tensor.wait_us, 40);
  EXPECT_DOUBLE_EQ(data.bus_GBps.value(), 2);
  EXPECT_DOUBLE_EQ(data.link_GBps.value(), 12.5);
  EXPECT_EQ(data.link, "RoCE");
  EXPECT_FALSE(traffic_by_group(f, nullptr).front().link_GBps);
}

// One rank of two: all-reduces of 1 MB in 100 us and of 3 MB in 100 us that hold its waiting: at least 4 MB / 200 us =
// 20 GB/s, and 30 GB/s of the larger. One that begins behind the step does not count.
TEST(TrafficOfAbsentRanks, IsAtLeastWhatTheWaitingLeaves) {
  Program program;
  BlockBuilder b{"step"};
  const LaneId gpu = b.add_lane({LaneKind::gpu_stream, "stream 14", 14});
  const GroupId group = program.add_group({.label = "data", .ranks = {0, 1}});
  for (const double bytes : {1e6, 3e6, 5e6}) {
    const WorkId work = program.works.intern(
        CollectiveWork{.op = CollectiveOp::all_reduce, .message = Bytes{bytes}, .group = group});
    b.add_task(gpu, {.kind = TaskKind::kernel, .kernel_class = KernelClass::communication, .work = work},
               Microseconds{100});
  }
  Result<Block> block = std::move(b).finish();
  ASSERT_TRUE(block.ok());
  RankClass rank;
  rank.lanes.assign(block->lanes().begin(), block->lanes().end());
  const RankClassId c = program.add_rank_class(std::move(rank));
  program.add_instance(c, {.block = program.add_block(std::move(block).value())});
  const FlatProgram flat{program};
  const Result<Plan> plan = Plan::compile(program);
  ASSERT_TRUE(plan.ok());
  const Result<Timeline> timeline = plan->simulate(Costs{program});
  ASSERT_TRUE(timeline.ok());
  const std::vector<Interval> windows{{0, 200}};
  const Platform platform = two_nodes_of_two();
  const std::vector<GroupTraffic> traffic =
      traffic_of_absent_ranks(flat, TaskTimes::simulated(flat, *timeline), windows, &platform);
  ASSERT_EQ(traffic.size(), 1U);
  EXPECT_TRUE(traffic[0].holds_waiting);
  EXPECT_EQ(traffic[0].n, 2U);
  EXPECT_EQ(traffic[0].n_ranks, 2U);
  EXPECT_DOUBLE_EQ(traffic[0].bus_GBps.value(), 20);
  EXPECT_DOUBLE_EQ(traffic[0].largest_bus_GBps.value(), 30);
  EXPECT_EQ(traffic[0].link, "NVLink mesh");
}

// A gemm of 2 x 100 x 200 x 300 = 12 MFLOP in 10 us and a kernel of unknown work in 30 us.
TEST(AchievedRates, AreOfTheKnownWorkAlone) {
  Program program;
  BlockBuilder b{"step"};
  const LaneId gpu = b.add_lane({LaneKind::gpu_stream, "stream 7", 7});
  const WorkId work = program.works.intern(gemm({.m = 100, .n = 200, .k = 300}, DType::fp16));
  b.add_task(gpu, {.kind = TaskKind::kernel, .kernel_class = KernelClass::gemm, .work = work},
             Microseconds{10});
  b.add_task(gpu, {.kind = TaskKind::kernel, .kernel_class = KernelClass::other}, Microseconds{30});
  Result<Block> block = std::move(b).finish();
  ASSERT_TRUE(block.ok());
  RankClass rank;
  rank.lanes.assign(block->lanes().begin(), block->lanes().end());
  const RankClassId c = program.add_rank_class(std::move(rank));
  program.add_instance(c, {.block = program.add_block(std::move(block).value())});
  const Result<Plan> plan = Plan::compile(program);
  ASSERT_TRUE(plan.ok());
  const Result<Timeline> timeline = plan->simulate(Costs{program});
  ASSERT_TRUE(timeline.ok());
  const FlatProgram flat{program};
  Forecast f;
  f.classes.push_back({.window_ms = 0.05, .computation_ms = 0.04, .gpu_active_ms = 0.04});
  const std::vector<Interval> window{{0, 50}};
  const Platform platform = two_nodes_of_two();
  const AchievedRates rates =
      achieved_rates(flat, TaskTimes::simulated(flat, *timeline), window, f, &platform);
  ASSERT_EQ(rates.ranks.size(), 1U);
  EXPECT_DOUBLE_EQ(rates.ranks[0].kernel_us, 40);
  EXPECT_DOUBLE_EQ(rates.ranks[0].known_us, 10);
  EXPECT_DOUBLE_EQ(rates.ranks[0].busy_us, 40);
  EXPECT_DOUBLE_EQ(rates.ranks[0].flops, 12e6);
  EXPECT_DOUBLE_EQ(rates.ranks[0].bytes, 2 * (100 * 300 + 300 * 200 + 100 * 200));
  ASSERT_EQ(rates.classes.size(), 2U);
  EXPECT_EQ(rates.classes[0].kernel_class, KernelClass::other);
  EXPECT_DOUBLE_EQ(rates.classes[0].known_us, 0);
  EXPECT_DOUBLE_EQ(rates.peak_tflops.value(), 125);
  EXPECT_EQ(rates.peak_type, "fp16");
  EXPECT_DOUBLE_EQ(rates.peak_GBps.value(), 900);
}

}  // namespace
}  // namespace stepcast::achieved_rates_test

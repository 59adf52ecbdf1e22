#include "stepcast/cost/nccl_choice.h"

#include <cmath>

#include <gtest/gtest.h>

namespace stepcast::nccl_choice_test {
namespace {

NcclFabric hopper_node() {
  NcclFabric fabric;
  fabric.generation = NcclGeneration::hopper;
  fabric.switched = true;
  fabric.link_GBps = 360;
  fabric.network_GBps = 360;
  return fabric;
}

TEST(NcclChoice, SmallMessagesGoInWordsWithFlags) {
  // Ring, LL: 6.6 + 2 (8 - 1) 0.6 = 15.0 us; tree, LL: 6.8 + 2 (8 - 1) 0.6 = 15.2; 8 bytes add nothing that counts.
  const NcclEstimate least = nccl_estimate(hopper_node(), CollectiveOp::all_reduce, 8, 1, 8);
  EXPECT_NEAR(least.time_us, 15.0, 1e-3);
  EXPECT_EQ(least.algorithm, NcclAlgorithm::ring);
  EXPECT_EQ(least.protocol, NcclProtocol::ll);
}

TEST(NcclChoice, LargeAllReducesAreAddedUpInTheSwitch) {
  // NVLS: 25 us + 1 GB x 2 x 7/8 over 360 x 0.85 x 23/24 x 2 = 586.5 GB/s: 25 + 2983.8 us. A ring needs 1 GB x 14/8 over
  // 360 GB/s, 4861 us.
  const NcclEstimate least = nccl_estimate(hopper_node(), CollectiveOp::all_reduce, 8, 1, 1e9);
  EXPECT_EQ(least.algorithm, NcclAlgorithm::nvls);
  EXPECT_NEAR(least.time_us, 25 + 1.75e9 / 586.5e3, 0.5);
  NcclFabric ampere = hopper_node();
  ampere.generation = NcclGeneration::ampere;
  EXPECT_EQ(nccl_estimate(ampere, CollectiveOp::all_reduce, 8, 1, 1e9).algorithm, NcclAlgorithm::ring);
}

TEST(NcclChoice, RanksOfARingCopyTheirOwnShareToo) {
  // Ring, Simple, 2 ranks: half of 1 GB over 360 GB/s, 1388.9 us, and the other half inside the GPU over 24 channels of
  // 36.7 GB/s, 567.7 us; 8.4 + 3.4 us before them. NVLS gathers registered buffers alone.
  const NcclEstimate two = nccl_estimate(hopper_node(), CollectiveOp::all_gather, 2, 1, 1e9);
  EXPECT_NEAR(two.time_us, 11.8 + 1388.9 + 567.7, 0.1);
  const NcclEstimate eight = nccl_estimate(hopper_node(), CollectiveOp::all_gather, 8, 1, 1e7);
  EXPECT_EQ(eight.algorithm, NcclAlgorithm::ring);
}

TEST(NcclChoice, GrowsWithMessageRanksAndNodes) {
  const NcclFabric fabric = hopper_node();
  for (const CollectiveOp op :
       {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
    double before = 0;
    for (double x = 3; x < 34; x += 0.5) {
      const double time_us = nccl_estimate(fabric, op, 8, 1, std::exp2(x)).time_us;
      EXPECT_GE(time_us, before);
      before = time_us;
    }
    // Small messages: a tree's start-up grows with the logarithm of the nodes, a ring's with their number.
    const auto start_up = [&](std::uint32_t nodes) {
      return nccl_estimate(fabric, op, 8 * nodes, nodes, 8).time_us;
    };
    EXPECT_GT(start_up(4), start_up(2));
    EXPECT_GT(start_up(64), start_up(4));
  }
  // 2 ((8 - 1) 0.6 + log2(64) 5.0) + 6.8 = 75.2 us for an all_reduce on 64 nodes, a tree.
  const NcclEstimate far = nccl_estimate(fabric, CollectiveOp::all_reduce, 512, 64, 8);
  EXPECT_NEAR(far.time_us, 75.2, 0.01);
  EXPECT_EQ(far.algorithm, NcclAlgorithm::tree);
}

Node mixed_node() {
  Node node;
  node.gpus_per_node = 4;
  node.intra.kind = LinkKind::mixed;
  node.intra.bandwidth_per_gpu = BytesPerSecond{100e9};
  node.intra.pcie_bandwidth_per_gpu = BytesPerSecond{16e9};
  return node;
}

TEST(NcclFabric, RingsOfMixedNodesTakeTheLinksThatJoinThem) {
  Device device;
  device.architecture = "volta";
  Node node = mixed_node();
  // Pairs alone: a ring of four goes through PCIe, 0.8 x 16 GB/s.
  node.intra.links = {{0, 1, BytesPerSecond{50e9}}, {2, 3, BytesPerSecond{50e9}}};
  EXPECT_TRUE(nccl_fabric(device, node, 2).nvlink);
  EXPECT_NEAR(nccl_fabric(device, node, 2).link_GBps, 40, 1e-9);  // 0.8 x 50
  EXPECT_FALSE(nccl_fabric(device, node, 4).nvlink);
  EXPECT_NEAR(nccl_fabric(device, node, 4).link_GBps, 12.8, 1e-9);
  // A cycle 0-1-2-3: every GPU has two links of 25 GB/s.
  node.intra.links = {{0, 1, BytesPerSecond{25e9}},
                      {1, 2, BytesPerSecond{25e9}},
                      {2, 3, BytesPerSecond{25e9}},
                      {0, 3, BytesPerSecond{25e9}}};
  EXPECT_TRUE(nccl_fabric(device, node, 4).nvlink);
  EXPECT_NEAR(nccl_fabric(device, node, 4).link_GBps, 40, 1e-9);
}

TEST(NcclFabric, HalfOfALatencyGoesWithTheClock) {
  Device device;
  Node node = mixed_node();
  node.intra.kind = LinkKind::nvswitch;
  EXPECT_EQ(nccl_fabric(device, node, 4).latency_scale, 1);  // nobody says how fast it is
  device.clock_MHz = 2 * 1530;
  EXPECT_NEAR(nccl_fabric(device, node, 4).latency_scale, 0.75, 1e-12);
}

// Direct links of a GPU lead to one other GPU each: a ring over few of them has few of its links, and a GPU no more than it
// sends to all together.
TEST(NcclFabric, AMeshGivesGroupsTheLinksBetweenThemAlone) {
  Node node{.gpus_per_node = 8};
  node.intra.bandwidth_per_gpu = BytesPerSecond{448e9};
  for (const LinkKind kind : {LinkKind::xgmi_mesh, LinkKind::nvlink_mesh}) {
    node.intra.kind = kind;
    EXPECT_DOUBLE_EQ(ring_bandwidth(node, 2).value(), 64e9);
    EXPECT_DOUBLE_EQ(ring_bandwidth(node, 4).value(), 192e9);
    EXPECT_DOUBLE_EQ(ring_bandwidth(node, 8).value(), 448e9);
  }
  Device device;
  device.architecture = "ampere";
  EXPECT_NEAR(nccl_fabric(device, node, 2).link_GBps, 0.8 * 64, 1e-9);
  node.intra.kind = LinkKind::nvswitch;
  EXPECT_DOUBLE_EQ(ring_bandwidth(node, 2).value(), 448e9);
  node.intra.kind = LinkKind::xgmi_mesh;
  node.intra.links = {
      {0, 1, BytesPerSecond{400e9}}, {0, 2, BytesPerSecond{100e9}}, {1, 2, BytesPerSecond{100e9}}};
  EXPECT_DOUBLE_EQ(ring_bandwidth(node, 2).value(), 400e9);
  EXPECT_DOUBLE_EQ(ring_bandwidth(node, 3).value(), 200e9);
  node.intra.links.front().bandwidth = BytesPerSecond{500e9};
  EXPECT_DOUBLE_EQ(ring_bandwidth(node, 2).value(), 448e9);
}

}  // namespace
}  // namespace stepcast::nccl_choice_test

#include "stepcast/cost/torus_collective.h"

#include <gtest/gtest.h>

#include "stepcast/cost/collective_model.h"

namespace stepcast::torus_collective_test {
namespace {

using enum CollectiveOp;

// 4 x 4 x 4 chips, six links of 100 GB/s and direction each.
Platform cube(std::uint32_t devices_per_chip = 1) {
  Platform p;
  p.node.gpus_per_node = 64 * devices_per_chip;
  p.node.intra.kind = LinkKind::torus;
  p.node.intra.bandwidth_per_gpu = BytesPerSecond{600e9 / devices_per_chip};
  p.node.intra.latency = Microseconds{1};
  p.node.intra.axes = {4, 4, 4};
  p.node.intra.devices_per_chip = devices_per_chip;
  p.node.intra.ring_chips = 4;
  return p;
}

TEST(TorusCollective, RingsOverOneTwoAndThreeAxes) {
  const IntraNode torus = cube().node.intra;
  EXPECT_DOUBLE_EQ(torus_link_bandwidth(torus).value(), 100e9);
  // Four chips, both ways around: 3/4 of the message comes in over two links.
  EXPECT_DOUBLE_EQ(torus_load(all_gather, torus, 4).messages_per_link, 3.0 / 4 / 2);
  EXPECT_DOUBLE_EQ(torus_load(reduce_scatter, torus, 16).messages_per_link, 15.0 / 16 / 4);
  EXPECT_DOUBLE_EQ(torus_load(all_reduce, torus, 64).messages_per_link, 2 * 63.0 / 64 / 6);
  EXPECT_DOUBLE_EQ(torus_load(send_receive, torus, 2).messages_per_link, 1);
}

TEST(TorusCollective, AnAllToAllPassesTheMiddle) {
  const IntraNode torus = cube().node.intra;
  // 32 chips send half of their message each to the other 32, over 16 rows with two links: 32 / 2 / 32 = 1/2.
  EXPECT_DOUBLE_EQ(torus_load(all_to_all, torus, 64).messages_per_link, 0.5);
  // A ring of four: 2 chips x 1/2 over two links.
  EXPECT_DOUBLE_EQ(torus_load(all_to_all, torus, 4).messages_per_link, 0.5);
}

TEST(TorusCollective, DevicesOfAChipShareItsLinks) {
  const IntraNode torus = cube(2).node.intra;
  EXPECT_DOUBLE_EQ(torus_link_bandwidth(torus).value(), 100e9);
  // A gathered message comes once to a chip; of an exchange both devices send their own.
  EXPECT_DOUBLE_EQ(torus_load(all_gather, torus, 128).messages_per_link, 63.0 / 64 / 6);
  EXPECT_DOUBLE_EQ(torus_load(all_to_all, torus, 128).messages_per_link, 1);
  EXPECT_DOUBLE_EQ(torus_load(all_gather, torus, 2).messages_per_link, 1.0 / 2 / 6);
}

TEST(TorusCollective, TheModelOfCollectivesTakesThem) {
  const CollectiveModel model{cube()};
  const auto resolved = model.resolve({.op = all_gather, .n_ranks = 64});
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  EXPECT_EQ(resolved->how, "from the links of the torus");
  // 1 GB: 63/64/6 of it at 90 % of 100 GB/s, and 7 hops.
  EXPECT_NEAR(resolved->curve.at(Bytes{1e9}).time.value(), 1e9 * 63 / 64 / 6 / 90e3 + 7, 3);
}

}  // namespace
}  // namespace stepcast::torus_collective_test

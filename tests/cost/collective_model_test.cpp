#include "stepcast/cost/collective_model.h"

#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/fails_with.h"
#include "tests/support/made_curves.h"

namespace stepcast::collective_model_test {
namespace {

using test::line;

Platform node_of_eight() {
  Platform p;
  p.name = "test";
  p.node.gpus_per_node = 8;
  p.node.intra.kind = LinkKind::nvswitch;
  p.node.intra.bandwidth_per_gpu = BytesPerSecond{300e9};
  Network network;
  network.nics_per_node = 8;
  network.bandwidth_per_nic = BytesPerSecond{25e9};
  network.rail_optimized = true;
  p.node.network = network;
  return p;
}

double us(const CollectiveModel& model, const CollectiveGroup& group, double bytes) {
  const auto resolved = model.resolve(group);
  EXPECT_TRUE(resolved.ok()) << resolved.error().message();
  return resolved.ok() ? resolved->curve.at(Bytes{bytes}).time.value() : 0;
}

using enum CollectiveOp;

TEST(CollectiveModel, AnswersACurveOfTheGroup) {
  Platform p = node_of_eight();
  p.set(line(all_reduce, 1, 8, 20, 200));
  const CollectiveModel model{p};
  const auto r = model.resolve({.op = all_reduce, .n_ranks = 8});
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->how, "fitted on this group");
  const Estimate e = r->curve.at(Bytes{0x1p30});
  EXPECT_NEAR(e.time.value(), 20 + 1.75 * 0x1p30 / 200e3, 5);  // 9415 us
  EXPECT_EQ(e.source, EstimateSource::fitted);
}

TEST(CollectiveModel, RelatedCollectivesMoveTheSameBytes) {
  Platform p = node_of_eight();
  p.set(line(all_gather, 1, 8, 15, 200));
  const CollectiveModel model{p};
  const double gather = us(model, {.op = all_gather, .n_ranks = 8}, 0x1p28);
  EXPECT_NEAR(us(model, {.op = reduce_scatter, .n_ranks = 8}, 0x1p28), gather, 1e-9 * gather);
  EXPECT_NEAR(us(model, {.op = all_reduce, .n_ranks = 8}, 0x1p28), 2 * gather, 1e-6 * gather);
  // A broadcast of m sends what an all_gather of m x 8/7 sends: 15 + m / 200 GB/s.
  EXPECT_NEAR(us(model, {.op = broadcast, .n_ranks = 8}, 0x1p28), 15 + 0x1p28 / 200e3, 3);
  const auto r = model.resolve({.op = broadcast, .n_ranks = 8});
  EXPECT_EQ(r->curve.at(Bytes{1e6}).source, EstimateSource::analytic);
}

// The switch adds floats of any kind and no integers: what was measured in fp16 answers for bf16 and fp32.
TEST(CollectiveModel, FloatsAreAddedAsFloats) {
  Platform p = node_of_eight();
  CollectiveCurve any = line(all_reduce, 1, 8, 20, 200), floats = line(all_reduce, 1, 8, 20, 250);
  any.dtype = DType::unknown;
  floats.dtype = DType::fp16;
  p.set(any);
  p.set(floats);
  const CollectiveModel model{p};
  const auto at = [&](DType dtype) {
    return us(model, {.op = all_reduce, .dtype = dtype, .n_ranks = 8}, 0x1p30);
  };
  EXPECT_EQ(at(DType::bf16), at(DType::fp16));
  EXPECT_EQ(at(DType::fp32), at(DType::fp16));
  EXPECT_EQ(at(DType::int8), at(DType::unknown));
  EXPECT_GT(at(DType::int8), 1.2 * at(DType::bf16));
}

// A rack whose eight GPUs were measured: NVSwitch of Hopper and later adds what 72 send.
TEST(CollectiveModel, SumsOfARackAreTheSwitches) {
  Platform p = node_of_eight();
  p.node.gpus_per_node = 72;
  p.device.vendor = "NVIDIA";
  p.device.architecture = "blackwell";
  p.set(line(all_reduce, 1, 8, 20, 700));
  p.set(line(all_gather, 1, 8, 20, 700));
  const CollectiveModel model{p};
  const auto r = model.resolve({.op = all_reduce, .n_ranks = 72});
  ASSERT_TRUE(r.ok());
  // 1 + 1/72 of the message at the rate at which 1 + 1/8 went.
  const double of_eight = us(model, {.op = all_reduce, .n_ranks = 8}, 0x1p33);
  EXPECT_NEAR(r->curve.at(Bytes{0x1p33}).time.value(), of_eight * 73 / 72 / (9.0 / 8), 0.01 * of_eight);
  // Bus bandwidth rises with the ranks, as that of no ring does; where start-up is all, it is not less.
  const double of_72 = r->curve.at(Bytes{0x1p33}).time.value();
  EXPECT_GT(bus_factor(all_reduce, 72) / of_72, 1.05 * bus_factor(all_reduce, 8) / of_eight);
  EXPECT_GE(r->curve.at(Bytes{64}).time.value(), us(model, {.op = all_reduce, .n_ranks = 8}, 64));
  EXPECT_EQ(model.resolve({.op = all_gather, .n_ranks = 72})->how, "scaled from 8 ranks");
}

// Sums over adapters of 400 Gb/s reach nearly all of them, what each sends to each does not.
TEST(CollectiveModel, FastAdaptersAreUsed) {
  Platform p = node_of_eight();
  p.node.intra.bandwidth_per_gpu = BytesPerSecond{4500e9};
  const auto GBps = [&](CollectiveOp op) {
    return bus_factor(op, 16) * 0x1p33 /
           us(CollectiveModel{p}, {.op = op, .n_ranks = 16, .n_nodes = 2}, 0x1p33) / 1000;
  };
  EXPECT_NEAR(GBps(all_reduce), 0.80 * 200, 1);
  p.node.network->bandwidth_per_nic = BytesPerSecond{50e9};
  EXPECT_NEAR(GBps(all_reduce), 0.97 * 400, 2);
  EXPECT_LT(GBps(all_to_all), 0.82 * 400);
}

TEST(CollectiveModel, WithoutCurvesUsesThePlatform) {
  const CollectiveModel model{node_of_eight()};
  const auto inside = model.resolve({.op = all_reduce, .n_ranks = 8});
  ASSERT_TRUE(inside.ok());
  // 1.75 x 1 GiB over 0.75 x 300 GB/s = 8351 us, and a start-up that no longer matters.
  EXPECT_NEAR(inside->curve.at(Bytes{0x1p30}).time.value(), 8351, 20);
  EXPECT_EQ(inside->curve.at(Bytes{0x1p30}).source, EstimateSource::analytic);
  const auto across = model.resolve({.op = all_reduce, .n_ranks = 16, .n_nodes = 2});
  ASSERT_TRUE(across.ok());
  // 8 adapters of 25 GB/s at 0.8: 160 GB/s; 2 x 15/16 x 1 GiB / 160 GB/s = 12583 us; slower than inside.
  EXPECT_NEAR(across->curve.at(Bytes{0x1p30}).time.value(), 12583, 50);
}

TEST(CollectiveModel, DomainsOfPcieShareOneLinkInAnAllToAll) {
  Platform p = node_of_eight();
  p.node.intra.kind = LinkKind::pcie;
  p.node.intra.bandwidth_per_gpu = BytesPerSecond{32e9};
  const CollectiveModel even{p};
  p.node.intra.gpus_per_pcie_domain = 4;
  const CollectiveModel shared{p};
  const auto ratio = [&](CollectiveOp op, std::uint32_t n) {
    const CollectiveGroup group{.op = op, .n_ranks = n};
    return us(shared, group, 0x1p32) / us(even, group, 0x1p32);
  };
  // Four GPUs send half of their buffers each over the one link of their domain: 2 buffers, beside 7/8 of one over a
  // GPU's own link.
  EXPECT_NEAR(ratio(all_to_all, 8), 16.0 / 7, 1e-3);
  EXPECT_DOUBLE_EQ(ratio(all_to_all, 4), 1);
  EXPECT_DOUBLE_EQ(ratio(all_reduce, 8), 1);
}

TEST(CollectiveModel, GroupsShareTheAdaptersOfTheirNode) {
  Platform p = node_of_eight();
  p.node.network->nics_per_node = 4;
  p.set(line(all_reduce, 2, 1, 30, 20));
  const CollectiveModel model{p};
  CollectiveGroup group{.op = all_reduce, .n_ranks = 2, .n_nodes = 2};
  const double alone = us(model, group, 0x1p30);
  group.groups_per_node = 4;  // one adapter each
  EXPECT_NEAR(us(model, group, 0x1p30), alone, 1e-6 * alone);
  group.groups_per_node = 8;  // two groups per adapter: half of the bandwidth, the same start-up
  EXPECT_NEAR(us(model, group, 0x1p30), 2 * alone, 0.01 * alone);
  EXPECT_NEAR(us(model, group, 8), 30, 0.1);
}

TEST(CollectiveModel, CrossingRailsCosts) {
  Platform p = node_of_eight();
  p.set(line(all_reduce, 2, 1, 30, 20));
  const CollectiveModel model{p};
  const CollectiveGroup aligned{.op = all_reduce, .n_ranks = 2, .n_nodes = 2};
  CollectiveGroup crossing = aligned;
  crossing.rail_aligned = false;
  EXPECT_GT(us(model, crossing, 0x1p30), 1.05 * us(model, aligned, 0x1p30));
}

TEST(CollectiveModel, AStraddlingGroupDrivesFewerAdapters) {
  const CollectiveModel model{node_of_eight()};
  const CollectiveGroup even{.op = all_reduce, .n_ranks = 8, .n_nodes = 2};
  CollectiveGroup uneven = even;  // 7 here, 1 there
  uneven.min_ranks_per_node = 1;
  EXPECT_GT(us(model, uneven, 0x1p30), 2 * us(model, even, 0x1p30));
}

TEST(CollectiveModel, EveryCollectiveHasATimeEverywhere) {
  Platform p = node_of_eight();
  p.set(line(all_reduce, 1, 4, 12, 200));
  const CollectiveModel model{p};
  for (const CollectiveOp op : {all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, gather,
                                scatter, send, receive, send_receive, barrier}) {
    for (const auto& [ranks, nodes] :
         {std::pair{2U, 1U}, {3U, 1U}, {8U, 1U}, {2U, 2U}, {16U, 2U}, {1024U, 128U}}) {
      const auto r = model.resolve({.op = op, .n_ranks = ranks, .n_nodes = nodes});
      ASSERT_TRUE(r.ok()) << to_string(op) << " " << ranks;
      double before = 0;
      for (double x = 0; x <= 36; x += 0.5) {
        const Estimate e = r->curve.at(Bytes{std::exp2(x)});
        ASSERT_TRUE(std::isfinite(e.time.value()) && e.time.value() > 0);
        ASSERT_GE(e.time.value(), before);
        ASSERT_LE(e.p10.value(), e.time.value());
        ASSERT_GE(e.p90.value(), e.time.value());
        before = e.time.value();
      }
    }
  }
}

TEST(CollectiveModel, SaysWhatItCannotDo) {
  Platform p = node_of_eight();
  p.node.network.reset();
  const CollectiveModel model{p};
  EXPECT_THAT(model.resolve({.op = unknown, .n_ranks = 8}),
              test::FailsWith("a collective that stepcast does not know"));
  EXPECT_THAT(model.resolve({.op = all_reduce, .n_ranks = 2, .n_nodes = 4}),
              test::FailsWith("a group of 2 ranks on 4 nodes"));
  const auto no_network = model.resolve({.op = all_reduce, .n_ranks = 16, .n_nodes = 2});
  ASSERT_FALSE(no_network.ok());
  EXPECT_NE(no_network.error().message().find("network"), std::string::npos);
}

TEST(UnevenAllToAll, PublishedRuleAndItsCorrection) {
  // Four ranks with shares 10, 20, 30, 40 per peer: sent (n-1) x 40 = 120; received by rank 0: 20 + 30 + 40
  // = 90.
  const std::vector<Bytes> shares{Bytes{10}, Bytes{20}, Bytes{30}, Bytes{40}};
  EXPECT_DOUBLE_EQ(uneven_all_to_all_size(shares, UnevenRule::published).value(), 120);
  EXPECT_DOUBLE_EQ(uneven_all_to_all_size(shares).value(), 160);
  // Balanced: the curve was measured with n shares. The published rule asks it for n - 1.
  const std::vector<Bytes> equal(4, Bytes{25});
  EXPECT_DOUBLE_EQ(uneven_all_to_all_size(equal, UnevenRule::published).value(), 75);
  EXPECT_DOUBLE_EQ(uneven_all_to_all_size(equal).value(), 100);
}

TEST(UnevenAllToAll, WholeMatrix) {
  // Rank 1 receives 30 + 50; nobody sends more than 50 + 5. 80 x 3/2.
  const std::vector<Bytes> sent{Bytes{99}, Bytes{30}, Bytes{0},  Bytes{1}, Bytes{99},
                                Bytes{2},  Bytes{5},  Bytes{50}, Bytes{99}};
  EXPECT_DOUBLE_EQ(uneven_all_to_all_size(sent, 3).value(), 120);
  EXPECT_DOUBLE_EQ(uneven_all_to_all_size(sent, 1).value(), 0);
}

}  // namespace
}  // namespace stepcast::collective_model_test

#include "stepcast/cost/collective_scaling.h"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/made_curves.h"

namespace stepcast::collective_scaling_test {
namespace {

using test::line;
using enum CollectiveOp;

// Ring: 4 ranks start in 10 us and 8 in 10 + (14 - 6) x step; curves made by that rule are scaled back
// exactly where the views agree.
TEST(ScaleRanks, FollowsARing) {
  const auto ring = [](double n) {
    // 4 us + 2(n-1) x (1 us + share / 100 GB/s): start-up 4 + 2(n-1), bus bandwidth 100.
    return line(all_reduce, 1, static_cast<std::uint32_t>(n), 4 + 2 * (n - 1), 100);
  };
  const auto c2 = time_curve(ring(2)), c4 = time_curve(ring(4)), c8 = time_curve(ring(8));
  ASSERT_TRUE(c2.ok() && c4.ok() && c8.ok());
  const std::array measured{RankCurve{2, &*c2}, RankCurve{4, &*c4}};
  const TimeCurve scaled = scale_ranks(all_reduce, measured, 8);
  for (const double bytes : {64.0, 4096.0, 0x1p26, 0x1p30}) {
    const double expected = c8->at(Bytes{bytes}).time.value();
    EXPECT_NEAR(scaled.at(Bytes{bytes}).time.value(), expected, 0.03 * expected) << bytes;
  }
  // In the knee the views differ and the band says so.
  const Estimate knee = scaled.at(Bytes{0x1p20});
  const double truth = c8->at(Bytes{0x1p20}).time.value();
  EXPECT_NEAR(knee.time.value(), truth, 0.1 * truth);
  EXPECT_LT(knee.p10.value(), truth);
  EXPECT_GT(knee.p90.value(), truth);
}

TEST(ScaleRanks, OneCountGivesAWiderBandThanTwo) {
  const auto c2 = time_curve(line(all_reduce, 1, 2, 8, 100)),
             c4 = time_curve(line(all_reduce, 1, 4, 12, 100));
  const std::array two{RankCurve{2, &*c2}, RankCurve{4, &*c4}};
  const std::array one{RankCurve{4, &*c4}};
  const Estimate a = scale_ranks(all_reduce, two, 8).at(Bytes{1024}),
                 b = scale_ranks(all_reduce, one, 8).at(Bytes{1024});
  EXPECT_GT((b.p90 - b.p10) / b.time, (a.p90 - a.p10) / a.time);
  EXPECT_EQ(b.source, EstimateSource::analytic);
}

// Six ranks of which four and eight were measured: bus bandwidth at equal messages in between, small messages too.
TEST(ScaleRanks, InterpolatesBetweenMeasuredCounts) {
  const auto c4 = time_curve(line(all_reduce, 1, 4, 12, 100)),
             c8 = time_curve(line(all_reduce, 1, 8, 12, 200));
  const std::array measured{RankCurve{4, &*c4}, RankCurve{8, &*c8}};
  const double share = std::log2(1.5);
  const double GBps = 100 * std::pow(2, share);
  const double expected = 2.0 * 5 / 6 * 0x1p32 / (1000 * GBps);
  EXPECT_NEAR(scale_ranks(all_reduce, measured, 6).at(Bytes{0x1p32}).time.value(), expected,
              0.002 * expected);
}

TEST(ScaleNodes, KeepsBusBandwidthAndGrowsStartup) {
  const auto c2 = time_curve(line(all_reduce, 2, 8, 40, 100));
  const TimeCurve c4 = scale_nodes(all_reduce, *c2, 2, 4, 8);
  // Bandwidth: factors 2 x 31/32 over 2 x 15/16. Start-up: one doubling, 1.5 times.
  EXPECT_NEAR(c4.at(Bytes{0x1p34}).time / c2->at(Bytes{0x1p34}).time, (31.0 / 32) / (15.0 / 16), 1e-3);
  EXPECT_NEAR(c4.at(Bytes{8}).time / c2->at(Bytes{8}).time, 1.5, 1e-3);
}

// From 16 GPUs of a node on 2 nodes to 64 on 8, in the words of NCCL's estimate; a pair of GPUs stays a pair.
TEST(GrowAsNccl, IsLongerByTheRatioOfTwoEstimates) {
  NcclFabric fabric;
  fabric.generation = NcclGeneration::hopper;
  fabric.switched = true;
  fabric.link_GBps = fabric.network_GBps = 360;
  const auto c2 = time_curve(line(all_reduce, 2, 8, 40, 300));
  const TimeCurve c8 = grow_as_nccl(all_reduce, *c2, fabric, {16, 2}, {64, 8});
  // Small: trees, 6.8 + 2 (7 x 0.6 + log2(nodes) 5.0): 25.2 us on 2 nodes, 45.2 on 8.
  // (Where NCCL changes to NVLS the ratio falls; the curve is kept from falling with it.)
  EXPECT_NEAR(c8.at(Bytes{8}).time / c2->at(Bytes{8}).time, 45.2 / 25.2, 0.02);
  const double before = c2->at(Bytes{8}).p90 / c2->at(Bytes{8}).time;
  EXPECT_NEAR(c8.at(Bytes{8}).p90 / c8.at(Bytes{8}).time, before * std::exp(2 * 0.06), 1e-3);
  const TimeCurve pair = grow_as_nccl(send_receive, *c2, fabric, {16, 2}, {64, 8});
  EXPECT_EQ(pair.at(Bytes{8}).time, c2->at(Bytes{8}).time);
}

}  // namespace
}  // namespace stepcast::collective_scaling_test

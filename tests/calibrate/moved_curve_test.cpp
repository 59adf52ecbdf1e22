#include "calibrate/moved_curve.h"

#include <cmath>

#include <gtest/gtest.h>

#include "calibrate/related_systems_fit.h"

namespace stepcast::moved_curve_test {
namespace {

// 10 us + size over 100 GB/s.
double expected_us(double bytes) { return 10 + bytes / 100e3; }

TimeCurve expected_curve() {
  TimeCurve::Table ln_us{};
  for (std::size_t i = 0; i < ln_us.size(); ++i)
    ln_us[i] = std::log(expected_us(std::exp2(TimeCurve::log2_bytes(i))));
  return {ln_us, ln_us, ln_us};
}

TEST(MovedCurve, GoesThroughItsSizesAndKeepsTheirMoveBeyond) {
  // A tenth less of start-up, a fifth less of bandwidth.
  const std::vector<CollectiveSample> samples = {{0x1p10, 0.9 * expected_us(0x1p10), DType::fp16, 0},
                                                 {0x1p28, 1.25 * expected_us(0x1p28), DType::fp16, 0}};
  const TimeCurve moved = moved_curve(expected_curve(), samples, {}, 0);
  const auto factor = [&](double bytes) { return moved.at(Bytes{bytes}).time.value() / expected_us(bytes); };
  EXPECT_NEAR(factor(0x1p10), 0.9, 1e-3);
  EXPECT_NEAR(factor(0x1p4), 0.9, 0.01);
  EXPECT_NEAR(factor(0x1p28), 1.25, 1e-3);
  EXPECT_NEAR(factor(0x1p34), 1.25, 0.01);
  // Half of the bandwidth, at 10 us of transfer: between the two.
  EXPECT_LT(factor(1e6), 1.2);
  EXPECT_GT(factor(1e6), 0.95);
}

TEST(MovedCurve, OneSizeMovesAllOfIt) {
  const std::vector<CollectiveSample> samples = {{0x1p20, 2 * expected_us(0x1p20), DType::fp16, 0}};
  const TimeCurve moved = moved_curve(expected_curve(), samples, {}, 0);
  for (const double bytes : {0x1p8, 0x1p20, 0x1p30}) {
    EXPECT_NEAR(moved.at(Bytes{bytes}).time.value(), 2 * expected_us(bytes), 0.01 * expected_us(bytes));
  }
}

CollectiveMeasurements sweep(std::uint32_t from, std::uint32_t to) {
  CollectiveMeasurements m;
  m.platform = "made";
  m.collective = CollectiveOp::all_gather;
  m.gpus_per_node = m.n_ranks = 8;
  for (std::uint32_t i = from; i <= to; ++i) {
    m.samples.push_back({std::exp2(i), 15 + std::exp2(i) / 150e3, DType::fp16, 0});
  }
  return m;
}

TEST(TwoSizes, AreASmallAndALargeOne) {
  const auto sizes = [](const CollectiveMeasurements& m) {
    std::vector<double> result;
    for (const CollectiveSample& s : two_sizes(m)) result.push_back(std::log2(s.message_bytes));
    return result;
  };
  EXPECT_EQ(sizes(sweep(9, 29)), (std::vector<double>{14, 26}));
  EXPECT_EQ(sizes(sweep(25, 34)), (std::vector<double>{25, 29}));  // 16 times the smallest
  EXPECT_EQ(sizes(sweep(20, 20)), (std::vector<double>{20}));
}

MeasuredSystem system_of(const std::string& name, const std::string& architecture, double GBps,
                         const CollectiveMeasurements& m) {
  MeasuredSystem s;
  s.name = name;
  s.device.architecture = architecture;
  s.node.gpus_per_node = 8;
  s.node.intra.kind = LinkKind::nvswitch;
  s.node.intra.bandwidth_per_gpu = BytesPerSecond{GBps * 1e9};
  s.curves = {&m};
  return s;
}

TEST(RelatedSystemsFit, AMachineLikeAnotherIsAnsweredByIt) {
  const CollectiveMeasurements m = sweep(9, 30), partial = sweep(20, 30);
  const auto related =
      fit_related_systems(std::vector{system_of("a", "ampere", 300, m), system_of("b", "ampere", 300, m)});
  ASSERT_TRUE(related.ok()) << related.error().message();
  ASSERT_EQ(related->shapes.size(), 1U);
  EXPECT_EQ(related->shapes[0].n_machines, 2U);
  const MeasuredSystem c = system_of("c", "ampere", 300, m);
  const auto curve = related->curve(c.device, c.node, CollectiveOp::all_gather, 8);
  ASSERT_TRUE(curve.has_value());
  for (const CollectiveSample& s : m.samples) {
    EXPECT_NEAR(curve->at(Bytes{s.message_bytes}).time.value() / s.time_us, 1, 0.15) << s.message_bytes;
  }
  const auto none = fit_related_systems(std::vector{system_of("p", "ampere", 300, partial)});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message().find("from start-up to full bandwidth"), std::string::npos);
}

TEST(RecordOfFewSizes, ReadsBackAsTheMovedCurve) {
  const CollectiveMeasurements m = sweep(9, 30);
  const MeasuredSystem s = system_of("a", "ampere", 300, m);
  const auto related = fit_related_systems(std::vector{s});
  ASSERT_TRUE(related.ok());
  CollectiveMeasurements few = m;
  few.samples = two_sizes(m);
  const auto record = record_of_few_sizes(few, *related, s.device, s.node, {});
  ASSERT_TRUE(record.ok()) << record.error().message();
  EXPECT_LE(record->fit->knots.size(), kMaxShippedKnots);
  const auto curve = time_curve(*record);
  ASSERT_TRUE(curve.ok()) << curve.error().message();
  for (const CollectiveSample& sample : few.samples) {
    EXPECT_NEAR(curve->at(Bytes{sample.message_bytes}).time.value() / sample.time_us, 1, 0.01);
  }
  few.n_nodes = 2;
  const auto over_nodes = record_of_few_sizes(few, *related, s.device, s.node, {});
  ASSERT_FALSE(over_nodes.ok());
  EXPECT_NE(over_nodes.error().message().find("on 2 nodes"), std::string::npos);
}

}  // namespace
}  // namespace stepcast::moved_curve_test

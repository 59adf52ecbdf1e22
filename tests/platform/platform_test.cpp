#include "stepcast/platform/platform.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::platform_test {
namespace {

using ::testing::HasSubstr;

Platform small() {
  Platform p;
  p.name = "p";
  p.device.name = "G";
  p.device.matrix_peak[static_cast<std::size_t>(DType::fp32)] = FlopsPerSecond{1e13};
  p.device.memory_bandwidth = BytesPerSecond{1e12};
  p.device.memory_size = Bytes{1e10};
  return p;
}

CollectiveCurve curve() {
  CollectiveCurve c;
  c.collective = CollectiveOp::all_reduce;
  c.n_nodes = 2;
  c.gpus_per_node = 4;
  c.n_ranks = 8;
  c.fit.edit().improved.form = "x";
  return c;
}

TEST(Platform, KeysTellRecordsApart) {
  CollectiveCurve c = curve();
  EXPECT_EQ(c.key(), "all_reduce/any/2x4/8");
  c.dtype = DType::fp16;
  c.variant = "ring";
  EXPECT_EQ(c.key(), "all_reduce/fp16/2x4/8/ring");
}

TEST(Platform, SetReplacesTheRecordOfTheSameKeyAndKeepsTheOrder) {
  Platform p = small();
  CollectiveCurve c = curve();
  p.set(c);
  c.collective = CollectiveOp::all_gather;
  p.set(c);
  c.fit.edit().improved.form = "y";
  p.set(c);
  ASSERT_EQ(p.curves.size(), 2U);
  EXPECT_EQ(p.curves[0].key(), "all_gather/any/2x4/8");
  EXPECT_EQ(p.curves[0].fit->improved.form, "y");
  EXPECT_EQ(p.curves[1].collective, CollectiveOp::all_reduce);
}

TEST(Platform, CheckFindsWhatAFileCouldNotSay) {
  EXPECT_TRUE(small().check().ok());
  Platform p = small();
  p.device.memory_bandwidth = BytesPerSecond{std::numeric_limits<double>::quiet_NaN()};
  EXPECT_FALSE(p.check().ok());
  p = small();
  p.device.launch_overhead = Microseconds{std::numeric_limits<double>::infinity()};
  EXPECT_FALSE(p.check().ok());
  p = small();
  CollectiveCurve c = curve();
  c.fit.edit().improved.parameters["a"] = std::nan("");
  p.set(c);
  ASSERT_FALSE(p.check().ok());
  EXPECT_THAT(p.check().error().message(), HasSubstr("collective_curves[0].improved.parameters.a"));
  p = small();
  p.curves = {curve(), curve()};
  EXPECT_THAT(p.check().error().message(), HasSubstr("a second `all_reduce/any/2x4/8`"));
}

TEST(Platform, NamesAreComparedLooselyButNotMore) {
  EXPECT_TRUE(same_name("azure_nd_a100_v4", "Azure ND-A100 v4"));
  EXPECT_FALSE(same_name("a100", "a1000"));
  EXPECT_FALSE(same_name("", "a"));
  EXPECT_TRUE(same_name("", " - _"));
}

}  // namespace
}  // namespace stepcast::platform_test

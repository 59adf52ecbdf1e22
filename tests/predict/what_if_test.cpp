#include "stepcast/predict/what_if.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::what_if_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Status applied(const std::vector<std::string>& changes, StepAssumptions& assumptions) {
  return apply_what_if(changes, assumptions);
}

// Twice as fast takes half the time.
TEST(WhatIf, DividesTheTimesOfParts) {
  StepAssumptions a;
  ASSERT_TRUE(applied({"nvlink=2x", "network=0.5", "gemm=8"}, a).ok());
  EXPECT_DOUBLE_EQ(a.intra_node_factor, 0.5);
  EXPECT_DOUBLE_EQ(a.inter_node_factor, 2);
  EXPECT_DOUBLE_EQ(a.gemm_factor, 0.125);
  EXPECT_DOUBLE_EQ(a.attention_factor, 1);
}

// A faster GPU does all but transfers faster, faster computation leaves what memory bounds.
TEST(WhatIf, GroupsOfParts) {
  StepAssumptions gpu, compute;
  ASSERT_TRUE(applied({"gpu=2x"}, gpu).ok());
  EXPECT_DOUBLE_EQ(gpu.gemm_factor, 0.5);
  EXPECT_DOUBLE_EQ(gpu.attention_factor, 0.5);
  EXPECT_DOUBLE_EQ(gpu.memory_bound_factor, 0.5);
  EXPECT_DOUBLE_EQ(gpu.communication_factor, 1);
  ASSERT_TRUE(applied({"compute=4x"}, compute).ok());
  EXPECT_DOUBLE_EQ(compute.gemm_factor, 0.25);
  EXPECT_DOUBLE_EQ(compute.attention_factor, 0.25);
  EXPECT_DOUBLE_EQ(compute.memory_bound_factor, 1);
}

TEST(WhatIf, NamesTheRange) {
  StepAssumptions a;
  EXPECT_THAT(applied({"gpu=101x"}, a).error().message(), HasSubstr("from 0.01 to 100 times as fast"));
}

TEST(WhatIf, RefusesWhatItDoesNotUnderstand) {
  for (const char* change : {"nvlnk=2x", "nvlink", "nvlink=", "nvlink=x", "nvlink=0x", "nvlink=-1",
                             "nvlink=1000x", "nvlink=2xx", "nvlink=nan", "=2x", ""}) {
    StepAssumptions a;
    const Status status = applied({change}, a);
    ASSERT_FALSE(status.ok()) << change;
    EXPECT_THAT(
        status.error().message(),
        AllOf(HasSubstr("--what-if"), HasSubstr("`" + std::string{change} + "`"), HasSubstr("nvlink=2x")));
    EXPECT_DOUBLE_EQ(a.intra_node_factor, 1);
  }
}

TEST(WhatIf, RefusesAPartThatIsNamedTwice) {
  StepAssumptions a;
  const Status status = applied({"nvlink=2x", "gemm=2x", "nvlink=3x"}, a);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(), HasSubstr("--what-if: `nvlink` is given twice; choose one"));
  EXPECT_DOUBLE_EQ(a.intra_node_factor, 1);
}

}  // namespace
}  // namespace stepcast::what_if_test

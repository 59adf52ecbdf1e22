#include "lab/dlrm_lookups.h"

#include <gtest/gtest.h>

#include "lab/suites.h"
#include "tests/support/data.h"

namespace stepcast::dlrm_lookups_test {
namespace {

constexpr const char* kHeader =
    "set,gpu,direction,weighted,tables,batch,lookups,sum_rows,sum_rows_times_dim,sum_dim,weights_dtype,"
    "gradient_dtype,op_us\n";

TEST(DlrmLookups, StepsOfOneOperatorBecomeTheirMean) {
  const std::string text = std::string{kHeader} +
                           "a,A100-SXM4-40GB,forward,0,2,100,1000,50,800,32,fp32,fp32,10\n"
                           "a,A100-SXM4-40GB,forward,0,2,100,2000,50,800,32,fp32,fp32,30\n"
                           "a,A100-SXM4-40GB,backward,0,2,100,2000,50,800,32,fp16,fp32,50\n";
  const Result<std::vector<MeasuredLookup>> all = parse_lookups(text, "x.csv");
  ASSERT_TRUE(all.ok()) << all.error().message();
  ASSERT_EQ(all->size(), 2U);
  EXPECT_DOUBLE_EQ((*all)[0].time_us, 20);
  EXPECT_DOUBLE_EQ((*all)[0].lookups, 1500);
  EXPECT_DOUBLE_EQ((*all)[1].weight_bytes, 2);
}

TEST(DlrmLookups, RefuseATimeOfZero) {
  const Result<std::vector<MeasuredLookup>> all =
      parse_lookups(std::string{kHeader} + "a,A100,forward,0,2,100,1000,50,800,32,fp32,fp32,0\n", "x.csv");
  ASSERT_FALSE(all.ok());
  EXPECT_NE(all.error().message().find("line 2"), std::string::npos) << all.error().message();
}

const GroupScore* long_ones(const SuiteResult& result, std::string_view name) {
  for (const TestScore& test : result.tests) {
    for (const GroupScore& group : test.groups) {
      if (test.test == name && group.group == "above 1 ms") return &group;
    }
  }
  return nullptr;
}

TEST(DlrmLookups, AreForecastWithConstantsOfOtherTraces) {
  SKIP_WITHOUT_DATA();
  const Result<SuiteResult> result = validate_dlrm(*test::measured_data() / "modern" / "embedding");
  ASSERT_TRUE(result.ok()) << result.error().message();
  const GroupScore* forward = long_ones(*result, "lookup_forward");
  const GroupScore* backward = long_ones(*result, "lookup_backward");
  ASSERT_TRUE(forward != nullptr && backward != nullptr);
  // The mean over operators; sets of two operators count once in the overall one.
  EXPECT_LT(forward->overall.mape, 10);
  EXPECT_LT(backward->overall.mape, 20);
  for (const TestScore& test : result->tests) {
    if (test.test != "lookup_rank_ratio") continue;
    EXPECT_LT(test.pooled.max_ape, 15);
  }
}

}  // namespace
}  // namespace stepcast::dlrm_lookups_test

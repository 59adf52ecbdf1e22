#include "stepcast/run/failures.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::failures_test {
namespace {

using ::testing::HasSubstr;

const std::string kHeader = "time_h,n_gpus,cause,downtime_min,nodes_lost\n";

std::string problem_of(const std::string& rows) {
  const Result<FailureRates> rates = parse_failure_log(kHeader + rows, "x.csv");
  return rates.ok() ? "" : rates.error().message();
}

TEST(Failures, OfThePublishedJobSumToItsInterruptions) {
  double per_h = 0;
  for (const FailureCause& cause : default_failures().causes) {
    const double units = cause.unit == FailureUnit::gpu    ? 16384
                         : cause.unit == FailureUnit::node ? 2048
                                                           : 1024;
    per_h += units / cause.mean_time_h;
  }
  EXPECT_NEAR(per_h * 54 * 24, 419, 1e-9);
}

// 1,024 GPUs for 10 hours, then 512 for 30: 25,600 GPU-hours; two of a kind and the half of Jeffreys' prior that it gets.
TEST(Failures, OfALogAreCountedOverGpuHours) {
  const Result<FailureRates> rates = parse_failure_log(
      kHeader + "5,1024,gpu,10,1\n10,1024,gpu,30,0\n20,512,a switch,,\n40,512,end,,\n", "x.csv");
  ASSERT_TRUE(rates.ok()) << rates.error().message();
  EXPECT_EQ(rates->causes[0].gpu_hours, 1024 * 10 + 512 * 30);
  ASSERT_EQ(rates->causes.size(), 2U);
  const FailureCause &other = rates->causes[0], &gpu = rates->causes[1];
  EXPECT_EQ(gpu.name, "gpu");
  EXPECT_EQ(gpu.events, 2);
  EXPECT_DOUBLE_EQ(gpu.mean_time_h, 25600 / 2.25);
  EXPECT_DOUBLE_EQ(*gpu.downtime_s, 1200);
  EXPECT_DOUBLE_EQ(gpu.nodes_lost, 0.5);
  EXPECT_EQ(other.name, "a switch");
  EXPECT_FALSE(other.downtime_s);
  // Deviations of 10 minutes each, one degree of freedom, two of them, over 20 minutes.
  EXPECT_NEAR(rates->causes[0].downtime_error, 10.0 / 20, 1e-12);
}

TEST(Failures, ThatEndALogCountWithoutAPrior) {
  const Result<FailureRates> rates = parse_failure_log("time_h,n_gpus,cause\n10,8,x\n20,8,x\n", "x.csv");
  ASSERT_TRUE(rates.ok()) << rates.error().message();
  EXPECT_EQ(rates->causes[0].prior_events, 0);
  EXPECT_DOUBLE_EQ(rates->causes[0].mean_time_h, 80);
}

TEST(Failures, ThatNeverCameAreRare) {
  const Result<FailureRates> rates = parse_failure_log("time_h,n_gpus,cause\n100,8,end\n", "x.csv");
  ASSERT_TRUE(rates.ok()) << rates.error().message();
  ASSERT_EQ(rates->causes.size(), 1U);
  EXPECT_DOUBLE_EQ(rates->causes[0].mean_time_h, 1600);
}

TEST(Failures, OfABadLogAreErrorsOfOneLine) {
  EXPECT_THAT(problem_of("-1,8,gpu,,\n"), HasSubstr("line 2, column time_h: found `-1`, expected hours"));
  EXPECT_THAT(problem_of("0,8,gpu,,\n"), HasSubstr("above 0"));
  EXPECT_THAT(problem_of("5,8,gpu,,\n5,8,gpu,,\n"), HasSubstr("line 3, column time_h"));
  EXPECT_THAT(problem_of("5,0,gpu,,\n"), HasSubstr("column n_gpus"));
  EXPECT_THAT(problem_of("5,8,gpu,0,\n"), HasSubstr("downtime_min: found `0`, expected a number above 0"));
  EXPECT_THAT(problem_of("5,8,gpu,-3,\n"), HasSubstr("downtime_min"));
  EXPECT_THAT(problem_of("5,8,gpu,,-1\n"), HasSubstr("nodes_lost"));
  EXPECT_THAT(problem_of("5,8,gpu,,1e9\n"), HasSubstr("nodes_lost"));
  EXPECT_THAT(problem_of("5,8,,,\n"), HasSubstr("column cause"));
  EXPECT_THAT(problem_of("5,8,end,,\n6,8,gpu,,\n"), HasSubstr("`end` is the last row"));
  EXPECT_THAT(problem_of("nan,8,gpu,,\n"), HasSubstr("time_h"));
  EXPECT_THAT(problem_of(""), HasSubstr("the rows: found none"));
  const auto no_cause = parse_failure_log("time_h,n_gpus\n1,8\n", "x.csv");
  ASSERT_FALSE(no_cause.ok());
  EXPECT_THAT(no_cause.error().message(), HasSubstr("no column cause"));
  std::string many;
  for (int i = 1; i < 110; ++i) many += std::to_string(i) + ",8,message " + std::to_string(i) + ",,\n";
  EXPECT_THAT(problem_of(many), HasSubstr("at most 100 causes"));
}

}  // namespace
}  // namespace stepcast::failures_test

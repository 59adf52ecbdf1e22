#include "lab/foreign_hosts.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::foreign_hosts_test {
namespace {

// mm of `us`, a gap of `pause_us` before it, a launch of `call_us`, and `loader_us` of it in a data loader.
OverheadFit job(double us, double pause_us, double call_us = 4, double loader_us = 10) {
  OverheadSamples samples;
  samples.add(OverheadType::t1, "aten::mm after aten::view", {pause_us, 1});
  samples.add(OverheadType::t5, "aten::mm", {us, 0});
  samples.add(OverheadType::t4, "cudaLaunchKernel", {call_us, 1});
  samples.add(OverheadType::t5, "enumerate(DataLoader) aten::mm", {loader_us, 0});
  return fit_overheads(samples);
}

TEST(ForeignHosts, TellHowMuchSlowerAnotherHostIs) {
  const HostSpeed speed = speed_of(job(32, 8, 8, 15), job(16, 8, 4));
  // mm 32 and call 8 against 16 and 4: twice as slow as a whole, which counts as 100 us of each part.
  EXPECT_DOUBLE_EQ(speed.in_ops, (32 + 2.0 * 100) / (16 + 100));
  EXPECT_DOUBLE_EQ(speed.calls, (8 + 2.0 * 100) / (4 + 100));
  EXPECT_DOUBLE_EQ(speed.between_ops, (8 + 2.0 * 100) / (8 + 100));
  EXPECT_DOUBLE_EQ(speed.data_loader, 1.5);
  EXPECT_DOUBLE_EQ(speed_of(job(32, 8), OverheadFit{}).in_ops, 1);
}

// A job on a host ten times slower, and one with a long pause, move no median.
TEST(ForeignHosts, OfSeveralJobsAreMediansAtOneSpeed) {
  const std::vector<OverheadFit> jobs{job(10000, 10000, 1000), job(100000, 100000, 10000),
                                      job(10000, 90000, 1000)};
  const OverheadFit pool = pooled_jobs(jobs);
  EXPECT_NEAR(pool.host().time(OverheadType::t5, "aten::mm").mean_us, 10000, 100);
  EXPECT_NEAR(pool.host().time(OverheadType::t1, "aten::mm").mean_us, 10000, 100);
  EXPECT_NEAR(speed_of(jobs[1], pool).in_ops, 10, 0.1);
  EXPECT_DOUBLE_EQ(share_known(pool, jobs[2]), 1);
  EXPECT_LT(share_known(by_family_alone(pool), jobs[2]), 1);
  // As their own hosts took them, one that is ten times slower moves it no more than another.
  EXPECT_DOUBLE_EQ(median_costs(jobs).host().time(OverheadType::t5, "aten::mm").mean_us, 10000);
  EXPECT_DOUBLE_EQ(median_costs(jobs).host().time(OverheadType::t1, "aten::mm").mean_us, 90000);
}

}  // namespace
}  // namespace stepcast::foreign_hosts_test

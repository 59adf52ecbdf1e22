#include "calibrate/job_speeds.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/host_spread_kind.h"

#include "calibrate/overhead_fit.h"

namespace stepcast::job_speeds_test {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

// A hundred operators of 30, 31, ... us on a host that takes `times` as long, and one of its own.
OverheadSamples job_of(double times, const std::string& own) {
  OverheadSamples job;
  for (int i = 0; i < 100; ++i)
    job.add(OverheadType::t5, "aten::op" + std::to_string(i), {times * (30 + i), 1});
  job.add(OverheadType::t2, own, {times * 50, 1});
  return job;
}

TEST(JobSpeeds, AreThoseOfTheOperatorsInCommon) {
  const std::vector<OverheadSamples> jobs{job_of(1, "a"), job_of(0.9, "b"), job_of(3, "c")};
  EXPECT_THAT(job_speeds(jobs),
              ElementsAre(DoubleNear(1, 1e-9), DoubleNear(0.9, 0.005), DoubleNear(3, 0.05)));
  OverheadSamples alone;
  alone.add(OverheadType::t5, "aten::elsewhere", {500, 1});
  EXPECT_THAT(job_speeds(std::vector{jobs[0], alone}), ElementsAre(1, 1)) << "nothing in common says nothing";
}

TEST(JobSpeeds, ASlowJobDoesNotSlowTheOthers) {
  const std::vector<OverheadSamples> jobs{job_of(1, "a"), job_of(0.9, "b"), job_of(3, "c")};
  const OverheadFit fit = fit_overheads(jobs);
  const HostOverheads host = fit.host();
  EXPECT_NEAR(host.time(OverheadType::t5, "aten::op20").mean_us, 50, 0.5);
  EXPECT_NEAR(host.time(OverheadType::t2, "c").mean_us, 50, 1) << "known from the slow job alone";
  // The slow job is three times what the others say, and the band reaches as far.
  ASSERT_TRUE(fit.band);
  EXPECT_NEAR(*fit.band, 2.16, 0.1);
  EXPECT_EQ(host.band(), 2.1579) << *fit.band;
  const HostOverheads as_they_are = fit_overheads(jobs, {.levels_jobs = false}).host();
  EXPECT_NEAR(as_they_are.time(OverheadType::t2, "c").mean_us, 150, 1);
  EXPECT_FALSE(fit_overheads(std::vector{jobs[0]}).band)
      << "a single job does not say how far jobs lie apart";
}

TEST(JobSpeeds, TheBandTravelsWithAPlatform) {
  Platform platform;
  fit_overheads(std::vector{job_of(1, "a"), job_of(1.2, "b")}).write_to(platform, {});
  ASSERT_NE(platform.find_model(kHostSpreadKind), nullptr);
  const auto host = HostOverheads::of(platform);
  ASSERT_TRUE(host.ok()) << host.error().message();
  EXPECT_NEAR(host->band().value_or(0), 0.2, 0.01);
  fit_overheads(std::vector{job_of(1, "a")}).write_to(platform, {});
  EXPECT_FALSE(HostOverheads::of(platform)->band()) << "one job takes the place of what was learned from two";
}

}  // namespace
}  // namespace stepcast::job_speeds_test

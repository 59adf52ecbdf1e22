#include "stepcast/run/goodput.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "lab/goodput_suite.h"

namespace stepcast::goodput_test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// M 3600 s, R 300, t 600, d 60: exp(-1/12) = 0.920044, exp(660/3600) - 1 = 0.201215, 600/3600 = 0.166667.
TEST(Goodput, OfAJobWorkedByHand) {
  const CheckpointedJob job{3600, 60, 0, std::exp(-300.0 / 3600)};
  EXPECT_NEAR(effective_share(job, 600), 0.166667 * 0.920044 / 0.201215, 2e-6);
}

// 419 interruptions in 54 days, 15 minutes down, a write of 8 s: 88.8 %.
TEST(Goodput, OfThePublishedJob) {
  const double between_s = 54 * 86400.0 / 419;
  const CheckpointedJob job{between_s, 8, 0, std::exp(-900 / between_s)};
  EXPECT_NEAR(100 * effective_share(job, best_interval_s(job, 1)), 88.78, 0.01);
}

TEST(Goodput, IsWholeWhereNothingIsLost) {
  EXPECT_EQ(effective_share({kNever, 0, 0, 1}, 600), 1);
  EXPECT_EQ(effective_share({kNever, 60, 0, 1}, kNever), 1);
  EXPECT_DOUBLE_EQ(effective_share({kNever, 60, 0, 1}, 540), 0.9);  // writes alone
  EXPECT_NEAR(effective_share({1e12, 60, 0, 1}, 540), 0.9, 1e-9);   // hardly any interruption
  // Free writes: half of a short interval is lost at each interruption.
  EXPECT_NEAR(effective_share({3600, 0, 0, 1}, 1), 1 - 0.5 / 3600, 1e-7);
  EXPECT_EQ(best_interval_s({3600, 0, 0, 1}, 7), 7);
  EXPECT_EQ(best_interval_s({kNever, 60, 0, 1}, 7), kNever);
}

TEST(Goodput, IsBestAtTheBestInterval) {
  for (const InterruptedJob& made : random_jobs(100, 3)) {
    const CheckpointedJob job{made.mean_time_s, made.write_s, made.lag_s, 1};
    const double best = best_interval_s(job, 1e-3);
    for (const double factor : {0.9, 0.99, 1.01, 1.1})
      EXPECT_LT(effective_share(job, best * factor), effective_share(job, best)) << best << " x " << factor;
  }
}

// Events one by one, which know nothing of the form: 0.5 %, 1 % where an interruption comes within four losses.
TEST(Goodput, IsThatOfEventsOneByOne) {
  const std::vector<InterruptedJob> jobs = random_jobs(200, 1);
  double sum = 0, largest = 0;
  std::size_t often = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const InterruptedJob& job = jobs[i];
    const bool is_often = job.mean_time_s < 4 * job.loss_s();
    often += is_often ? 1 : 0;
    const double simulated = simulated_share(job, enough_interruptions(job), i);
    const double error = std::abs(forecast_share(job) / simulated - 1);
    EXPECT_LT(error, is_often ? 0.01 : 0.005) << "job " << i;
    sum += error;
    largest = std::max(largest, error);
  }
  EXPECT_GT(often, 20U);
  EXPECT_LT(often, 180U);
  EXPECT_LT(sum / 200, 0.002);
  RecordProperty("mean_percent", std::to_string(100 * sum / 200));
  RecordProperty("largest_percent", std::to_string(100 * largest));
}

}  // namespace
}  // namespace stepcast::goodput_test

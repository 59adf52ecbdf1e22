#include "lab/interrupted_job.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "stepcast/run/goodput.h"

namespace stepcast {

double simulated_share(const InterruptedJob& job, std::int64_t interruptions, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  std::exponential_distribution<double> until{1 / job.mean_time_s};
  double clock = 0, kept = 0;
  for (std::int64_t i = 0; i < interruptions; ++i) {
    const double interrupted = until(random);
    clock += interrupted;
    double now = job.down_s, safe = 0;
    while (now < interrupted) {
      now += job.interval_s + job.write_s;
      // A checkpoint that is safe in time is not done again.
      if (now + job.lag_s <= interrupted) safe += job.interval_s;
    }
    kept += safe;
  }
  return kept / clock;
}

double forecast_share(const InterruptedJob& job) {
  return effective_share({job.mean_time_s, job.write_s, job.lag_s, std::exp(-job.down_s / job.mean_time_s)},
                         job.interval_s);
}

std::vector<InterruptedJob> random_jobs(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto log_uniform = [&](double least, double most) {
    return least * std::pow(most / least, std::uniform_real_distribution<double>{}(random));
  };
  std::vector<InterruptedJob> jobs;
  for (std::size_t i = 0; i < n; ++i) {
    InterruptedJob job;
    job.mean_time_s = log_uniform(600, 400'000);
    job.down_s = job.mean_time_s * log_uniform(1e-3, 0.5);
    job.write_s = job.mean_time_s * log_uniform(1e-4, 0.05);
    job.lag_s = i % 3 == 0 ? job.write_s * log_uniform(0.1, 2) : 0;
    const double best = best_interval_s({job.mean_time_s, job.write_s, job.lag_s, 1}, 1);
    job.interval_s = std::max(job.lag_s, best * log_uniform(0.4, 2.5));
    jobs.push_back(job);
  }
  return jobs;
}

std::int64_t enough_interruptions(const InterruptedJob& job) {
  return job.mean_time_s < 4 * job.loss_s() ? 200'000 : 40'000;
}

}  // namespace stepcast

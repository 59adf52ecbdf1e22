#include "calibrate/job_speeds.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "stepcast/base/statistics.h"
#include "stepcast/cost/host_overheads.h"
#include "stepcast/operation/overhead_name.h"

namespace stepcast {
namespace {

// Least host time in common that determines the speed of a job's host. Assumed; some dozen operators.
constexpr double kLeastSharedUs = 100;
// Medians and factors converge to four digits within a few rounds.
constexpr int kRounds = 8;

// The occurrences of one operator or call in one job.
struct OfJob {
  std::size_t job = 0;
  double mean_us = 0, n = 0;
};

std::vector<std::vector<OfJob>> shared_operators(std::span<const OverheadSamples> jobs) {
  std::map<std::pair<OverheadType, std::string>, std::vector<OfJob>> all;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    for (const auto& [key, samples] : jobs[j].of) {
      if (samples.empty() || key.second == kStepEnd || is_in_data_loader(key.second)) continue;
      OfJob one{.job = j, .n = static_cast<double>(samples.size())};
      for (const OverheadSample& sample : samples) one.mean_us += sample.duration_us / one.n;
      all[key].push_back(one);
    }
  }
  std::vector<std::vector<OfJob>> shared;
  for (auto& [key, of_jobs] : all)
    if (of_jobs.size() > 1) shared.push_back(std::move(of_jobs));
  return shared;
}

}  // namespace

std::vector<double> job_speeds(std::span<const OverheadSamples> jobs) {
  std::vector<double> speed(jobs.size(), 1.0);
  const std::vector<std::vector<OfJob>> shared = shared_operators(jobs);
  for (int round = 0; round < kRounds && !shared.empty(); ++round) {
    std::vector<double> recorded_us(jobs.size(), 0.0), typical_us(jobs.size(), 0.0);
    for (const std::vector<OfJob>& of_jobs : shared) {
      std::vector<double> means;
      for (const OfJob& one : of_jobs) means.push_back(one.mean_us / speed[one.job]);
      const double typical = median(std::move(means));
      for (const OfJob& one : of_jobs) {
        recorded_us[one.job] += one.n * one.mean_us;
        typical_us[one.job] += one.n * typical;
      }
    }
    std::vector<double> of_sharing_jobs;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      speed[j] = (recorded_us[j] + kLeastSharedUs) / (typical_us[j] + kLeastSharedUs);
      if (recorded_us[j] > 0) of_sharing_jobs.push_back(speed[j]);
    }
    const double middle = median(std::move(of_sharing_jobs));
    for (std::size_t j = 0; j < jobs.size(); ++j) speed[j] = recorded_us[j] > 0 ? speed[j] / middle : 1;
  }
  return speed;
}

double job_band(std::span<const double> left_out_us, std::span<const double> recorded_us) {
  std::vector<double> off;
  for (std::size_t j = 0; j < left_out_us.size(); ++j)
    if (left_out_us[j] > 0 && recorded_us[j] > 0)
      off.push_back(std::abs(std::log(left_out_us[j] / recorded_us[j])));
  std::ranges::sort(off);
  return std::exp(future_quantile(off, 0.8)) - 1;
}

}  // namespace stepcast

// Helpers of the suite `goodput`: an event-by-event simulation of a job with interruptions and checkpoints, with which the
// closed form of run/goodput.h is compared, and the slowest steps of long runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

struct InterruptedJob {
  double mean_time_s = 0, down_s = 0, write_s = 0, lag_s = 0, interval_s = 0;
  // Lost time of an interruption: downtime, half an interval, and work that is not durable yet.
  [[nodiscard]] double loss_s() const { return down_s + (interval_s + write_s) / 2 + lag_s; }
};

// Share of the time that is kept as training, simulated over this number of interruptions at exponential times.
[[nodiscard]] double simulated_share(const InterruptedJob& job, std::int64_t interruptions,
                                     std::uint64_t seed);

// The same share by the closed form of run/goodput.h.
[[nodiscard]] double forecast_share(const InterruptedJob& job);

// Random jobs: mean times between interruptions of minutes to days, downtimes and writes up to a part of them, intervals
// around the optimum.
[[nodiscard]] std::vector<InterruptedJob> random_jobs(std::size_t n, std::uint64_t seed);

// A number of interruptions with an error well below 0.5 %, and below 1 % if interruptions are frequent.
[[nodiscard]] std::int64_t enough_interruptions(const InterruptedJob& job);

// Scores how slow the slowest steps of long runs are: p99 over p50 of series of single steps in
// `field/step_distributions.csv`. Predicted with jitter fitted to p90 and p99 of the other series, with the shipped jitter,
// and by a constant ratio. Empty if the file is missing. Errors: missing columns.
[[nodiscard]] Result<std::vector<TestScore>> run_tails(const std::filesystem::path& folder);

}  // namespace stepcast

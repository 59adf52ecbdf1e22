// What the suite `goodput` rests on: a job that is interrupted and writes checkpoints, event by event, which the closed form
// of run/goodput.h is held against, and the slowest steps of long runs.
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
  // Lost time of an interruption: downtime, half a piece, what is not safe yet.
  [[nodiscard]] double loss_s() const { return down_s + (interval_s + write_s) / 2 + lag_s; }
};

// Share of the time that is kept as training, over so many interruptions at exponential times.
[[nodiscard]] double simulated_share(const InterruptedJob& job, std::int64_t interruptions,
                                     std::uint64_t seed);

// The same by run/goodput.h.
[[nodiscard]] double forecast_share(const InterruptedJob& job);

// Mean times of minutes to days, downtimes and writes up to a part of them, intervals around the best one.
[[nodiscard]] std::vector<InterruptedJob> random_jobs(std::size_t n, std::uint64_t seed);

// Enough for an error well below 0.5 %, and below 1 % where interruptions are frequent.
[[nodiscard]] std::int64_t enough_interruptions(const InterruptedJob& job);

// How slow the slowest steps of long runs are: run/step_spread.h beside a constant ratio.
// p99 over p50 of `field/step_distributions.csv`, of series of single steps: with the jitter fitted to the others' p90 and
// p99, with the shipped one, and the constant. Nothing where the file is missing. Errors: columns that are not there.
[[nodiscard]] Result<std::vector<TestScore>> run_tails(const std::filesystem::path& folder);

}  // namespace stepcast

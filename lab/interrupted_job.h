// A job that is interrupted and writes checkpoints, event by event: what the closed form of run/goodput.h is held against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace stepcast

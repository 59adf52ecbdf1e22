// Exact goodput of a job with memoryless interruptions and periodic checkpoints.
//
// After an interruption the job is down for R. Then it trains in pieces of t, each followed by a checkpoint write of d; a
// checkpoint is safe w after its write. With a mean time M between interruptions, exp(-(R + w) / M) / (exp((t + d) / M) - 1)
// checkpoints become safe between two interruptions on average, and each of them keeps t. Restarts can be interrupted, too.
// Source: Daly 2006, "A higher order estimate of the optimum checkpoint interval", who gives the exact time for w = 0.
#pragma once

namespace stepcast {

// Parameters of the model, with the symbols above.
struct CheckpointedJob {
  double mean_time_s = 0;     // M; infinite: no interruptions
  double write_s = 0;         // d: training stops
  double lag_s = 0;           // w: training continues
  double restart_chance = 1;  // mean of exp(-R / M) over the causes
};

// Share of the time kept as training, 0 to 1, with a checkpoint after every `interval_s` of training.
[[nodiscard]] double effective_share(const CheckpointedJob& job, double interval_s);

// The interval with the largest share, by Newton iterations from sqrt(2 d M). At least `least_s`; infinite without
// interruptions.
[[nodiscard]] double best_interval_s(const CheckpointedJob& job, double least_s);

}  // namespace stepcast

// How much of its time a job that is interrupted and writes checkpoints trains, exactly, where interruptions have no memory.
//
// After an interruption the job is down for R, then trains in pieces of t that end with a write of d; a checkpoint counts
// once it is safe, w after its write. Between two interruptions M apart in the mean it keeps t for each checkpoint that is
// safe, of which there are exp(-(R + w) / M) / (exp((t + d) / M) - 1) in the mean; restarts are interrupted, too. Renewals
// of this kind: Daly 2006, "A higher order estimate of the optimum checkpoint interval", whose exact time it is with w = 0.
#pragma once

namespace stepcast {

struct CheckpointedJob {
  double mean_time_s = 0;     // M; infinite: nothing interrupts it
  double write_s = 0;         // d: training stands still
  double lag_s = 0;           // w: training goes on meanwhile
  double restart_chance = 1;  // exp(-R / M), in the mean over causes
};

// Share of the time that is kept as training, 0 to 1, with a checkpoint every `interval_s` of training.
[[nodiscard]] double effective_share(const CheckpointedJob& job, double interval_s);

// The interval of the largest share: Newton from sqrt(2 d M); at least `least_s`, infinite where nothing interrupts.
[[nodiscard]] double best_interval_s(const CheckpointedJob& job, double least_s);

}  // namespace stepcast

// A whole training with what goes wrong in it: how much of its time it trains, how long it takes, what is lost to what.
//
//   STEPCAST_ASSIGN(const RunAssumptions how, read_run_assumptions("default", {"mode=async", "spares=8"}));
//   STEPCAST_ASSIGN(const RunForecast run, forecast_run(how, run_job_of(model, layout, platform, step_s), time));
//   run.effective_share_percent, run.days_p90, run.losses
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

struct Recovery;  // recovery.h
struct RunAssumptions;

// GPUs of a job that fail at rates of their own.
struct RunPool {
  std::vector<std::string> names{};  // that they go by: platform, zone
  double n_gpus = 0, gpus_per_node = 1;
};

// What a run needs to know of the job and its machine.
struct RunJob {
  double n_gpus = 1, gpus_per_node = 1;
  double replicas = 1;             // data-parallel
  double step_s = 1;               // a checkpoint stands between two steps
  double checkpoint_bytes = 0;     // weights, master weights and states of the optimizer, once
  double writers = 1;              // ranks that hold different parts of it
  double host_bytes_per_s = 0;     // of one GPU, to the memory of its host
  double network_bytes_per_s = 0;  // of one GPU's share of the network to another node
  double forward_s = 0;            // a step of evaluation
  // Steps from one to the next, batches of each evaluation; 0: nobody says so, or none.
  double evaluation_interval = 0, evaluation_batches = 0, save_interval = 0;
  bool saves_asynchronously = false;
  std::vector<RunPool> pools{};  // of a job on several
};

// What all ranks do behind every so many steps and that stands between them: "evaluation", "checkpoint".
struct RegularStop {
  std::string name{};
  double every_steps = 1, s = 0;
  friend bool operator==(const RegularStop&, const RegularStop&) = default;
};

// What one checkpoint takes: it stops training, is safe so much later, and is read again after an interruption.
struct CheckpointTimes {
  double stops_s = 0, lag_s = 0, reload_s = 0;
};
[[nodiscard]] CheckpointTimes checkpoint_times(const Recovery& how, const RunJob& job);

// Evaluation and checkpoints behind how many steps, and how long they stop training. `checkpoint_interval_s` of training
// lies between two checkpoints; 0: as many steps as the job says, or nobody says so.
[[nodiscard]] std::vector<RegularStop> regular_stops(const Recovery& how, const RunJob& job,
                                                     double checkpoint_interval_s = 0);

// Time of all steps without losses, evaluation and checkpoints, with its band.
struct ComputeTime {
  double s = 0, p10_s = 0, p90_s = 0;
};

struct RunLoss {
  std::string cause{};
  double interruptions = 0;                                          // in the whole run
  double mean_time_h = 0, mean_time_p10_h = 0, mean_time_p90_h = 0;  // of the job, between two
  double down_percent = 0, again_percent = 0;                        // of the time
  friend bool operator==(const RunLoss&, const RunLoss&) = default;
};

// The same job on more or fewer GPUs, each of which does as much as before.
struct RunScale {
  std::uint64_t n_gpus = 0;
  double effective_share_percent = 0, days = 0;
  friend bool operator==(const RunScale&, const RunScale&) = default;
};

struct RunForecast {
  std::string failures{};  // where the rates come from
  // Of the time that the GPUs are held; the band is that of the rates and downtimes, in the long run.
  double effective_share_percent = 0, effective_share_p10_percent = 0, effective_share_p90_percent = 0;
  // The band also has that of the step, and chance: how many interruptions there are.
  double days = 0, days_p10 = 0, days_p90 = 0, days_without_losses = 0;  // the last with evaluation
  double interruptions = 0, mean_time_to_interruption_h = 0;
  std::string checkpoint_mode{};
  double checkpoint_GB = 0, checkpoint_interval_min = 0, checkpoint_stops_s = 0, checkpoint_safe_after_s = 0;
  double checkpoint_percent = 0;  // of the time
  double waiting_percent = 0;     // of the time: for nodes in repair, or replicas less
  double held_gpus = 0;           // with those of spare nodes
  std::vector<RunLoss> losses{};
  std::vector<RunScale> scale{};
  double most_useful_gpus = 0;  // more of them train no more in a day
  friend bool operator==(const RunForecast&, const RunForecast&) = default;
};

// Errors: an interval shorter than a checkpoint takes to be safe, a job that gets nowhere. `draws` of the rates and of
// chance give the bands, always the same ones.
[[nodiscard]] Result<RunForecast> forecast_run(const RunAssumptions& assumptions, const RunJob& job,
                                               const ComputeTime& steps, std::size_t draws = 2000);

}  // namespace stepcast

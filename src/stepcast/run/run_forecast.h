// Forecasts a whole training run with interruptions: goodput, duration and losses by cause.
//
//   STEPCAST_ASSIGN(const RunAssumptions how, read_run_assumptions("default", {"mode=async", "spares=8"}));
//   STEPCAST_ASSIGN(const RunForecast run, forecast_run(how, run_job_of(model, layout, platform, step_s), time));
//   run.effective_share_percent, run.days_p90, run.losses
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/fields.h"
#include "stepcast/base/result.h"

namespace stepcast {

// Both are declared in recovery.h.
struct Recovery;
struct RunAssumptions;

// A pool of GPUs with failure rates of its own.
struct RunPool {
  std::vector<std::string> names{};  // names the user may give: platform, zone
  double n_gpus = 0, gpus_per_node = 1;
};

// The properties of a job and its machine that a run forecast needs.
struct RunJob {
  // All GPUs of the job, and those of one node.
  double n_gpus = 1, gpus_per_node = 1;
  // Data-parallel replicas.
  double replicas = 1;
  // Time of a step in s. Checkpoints are written between steps.
  double step_s = 1;
  // One copy of the weights, master weights and optimizer states.
  double checkpoint_bytes = 0;
  // Ranks that each write a different part of a checkpoint.
  double writers = 1;
  // Bandwidth of one GPU to the memory of its host, and to another node as its share of the network.
  double host_bytes_per_s = 0;
  double network_bytes_per_s = 0;
  // Time of one evaluation batch in s.
  double forward_s = 0;
  // Steps between evaluations, batches per evaluation, steps between checkpoints; 0: not given, or none.
  double evaluation_interval = 0, evaluation_batches = 0, save_interval = 0;
  // Default of the checkpoint mode: async if true, else sync.
  bool saves_asynchronously = false;
  // The pools of a job on several pools; otherwise empty.
  std::vector<RunPool> pools{};
};

// A stop of all ranks between steps, repeated after a fixed number of steps: "evaluation" or "checkpoint".
struct RegularStop {
  STEPCAST_FIELDS(RegularStop);
  STEPCAST_FIELD(std::string, name, "kind of stop: evaluation or checkpoint");
  STEPCAST_FIELD(double, every_steps, "number of training steps between two stops", 1);
  STEPCAST_FIELD(double, s, "time for which training stops, in s");
};

// Times of one checkpoint: training stops, further time until it is safe, reading it after an interruption.
struct CheckpointTimes {
  double stops_s = 0, lag_s = 0, reload_s = 0;
};
// Times of a checkpoint in the mode of `how` or the job.
[[nodiscard]] CheckpointTimes checkpoint_times(const Recovery& how, const RunJob& job);

// Evaluation and checkpoints with their intervals in steps and the time they stop training. `checkpoint_interval_s`: training
// time between two checkpoints; 0: the interval of the job in steps, if given.
[[nodiscard]] std::vector<RegularStop> regular_stops(const Recovery& how, const RunJob& job,
                                                     double checkpoint_interval_s = 0);

// Time of all steps without losses, evaluation and checkpoints, with p10 and p90.
struct ComputeTime {
  double s = 0, p10_s = 0, p90_s = 0;
};

// Losses by one cause of interruptions.
struct RunLoss {
  STEPCAST_FIELDS(RunLoss);
  STEPCAST_COLUMN(std::string, cause, "cause of interruptions", "lost to<");
  STEPCAST_COLUMN(double, interruptions, "expected number of interruptions in the whole run", "times");
  STEPCAST_COLUMN(double, mean_time_h, "mean time between two interruptions of the job, in h",
                  "hours\nbetween", 1);
  STEPCAST_COLUMN(double, mean_time_p10_h,
                  "10th percentile of that mean, from the uncertainty of the log or of other clusters, in h",
                  "p10", 1);
  STEPCAST_COLUMN(double, mean_time_p90_h, "90th percentile of that mean, in h", "p90", 1);
  STEPCAST_COLUMN(double, down_percent,
                  "downtime in percent of the run: detection, restart and reading the checkpoint", "down\n%",
                  2);
  STEPCAST_COLUMN(double, again_percent,
                  "work since the last checkpoint that is repeated, in percent of the run", "again\n%", 2);
};

// The same training on another number of GPUs with the same work per GPU.
struct RunScale {
  STEPCAST_FIELDS(RunScale);
  STEPCAST_COLUMN(std::uint64_t, n_gpus, "number of GPUs, with the same work per GPU",
                  "GPUs, the same work each");
  STEPCAST_COLUMN(double, effective_share_percent, "goodput on this number of GPUs, in percent", "trains\n%",
                  1);
  STEPCAST_COLUMN(double, days, "days of the same training on this number of GPUs", "days", 1);
};

// The forecast of a run. Percentages refer to the time in which GPUs are allocated.
struct RunForecast {
  STEPCAST_FIELDS(RunForecast);
  STEPCAST_FIELD(std::string, failures, "source of the failure rates");
  STEPCAST_FIELD(double, effective_share_percent,
                 "goodput: kept training time in percent of the time in which GPUs are allocated");
  STEPCAST_FIELD(double, effective_share_p10_percent,
                 "10th percentile of the long-run goodput, from rates and downtimes, in percent");
  STEPCAST_FIELD(double, effective_share_p90_percent, "90th percentile of the long-run goodput, in percent");
  STEPCAST_FIELD(double, days, "days of the run, with all losses");
  STEPCAST_FIELD(double, days_p10,
                 "10th percentile of the days, from rates, downtimes, step time and chance");
  STEPCAST_FIELD(double, days_p90, "90th percentile of the days");
  STEPCAST_FIELD(double, days_without_losses, "days without losses: number of steps times step time");
  STEPCAST_FIELD(double, interruptions, "expected number of interruptions in the whole run");
  STEPCAST_FIELD(double, mean_time_to_interruption_h,
                 "mean time to an interruption of the job by any cause, in h");
  STEPCAST_FIELD(std::string, checkpoint_mode, "kind of checkpoint: sync, async or memory");
  STEPCAST_FIELD(double, checkpoint_GB,
                 "size of a checkpoint in GB: weights, master weights and optimizer states, one copy");
  STEPCAST_FIELD(double, checkpoint_interval_min,
                 "training time between two checkpoints in minutes, as given or the best");
  STEPCAST_FIELD(double, checkpoint_stops_s, "time for which one checkpoint stops training, in s");
  STEPCAST_FIELD(double, checkpoint_safe_after_s, "further time until the checkpoint is safe, in s");
  STEPCAST_FIELD(double, checkpoint_percent,
                 "time stopped for checkpoints that are kept, in percent of the run");
  STEPCAST_FIELD(double, waiting_percent,
                 "time lost to nodes in repair (waiting, or fewer replicas), in percent of the run");
  STEPCAST_FIELD(double, held_gpus,
                 "number of allocated GPUs, with those of spare nodes; GPU-hours count them");
  STEPCAST_FIELD(std::vector<RunLoss>, losses, "losses by cause");
  STEPCAST_FIELD(std::vector<RunScale>, scale, "the same training on more and on fewer GPUs");
  STEPCAST_FIELD(double, most_useful_gpus, "number of GPUs above which more GPUs train no more in a day");
};

// Errors: an interval shorter than the time until a checkpoint is safe, a job with hardly any goodput. The bands come from
// `draws` random draws of rates and chance with a fixed seed.
[[nodiscard]] Result<RunForecast> forecast_run(const RunAssumptions& assumptions, const RunJob& job,
                                               const ComputeTime& steps, std::size_t draws = 2000);

}  // namespace stepcast

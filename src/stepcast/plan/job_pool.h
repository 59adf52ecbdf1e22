// Divides a pool of GPUs among several trainings: the number of nodes for each.
//
// Model: all jobs start at the same time and run to their end on whole nodes of their own. Nodes of a finished job are not
// reused. plan_training() gives the duration of a job for each number of nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/plan/training_plan.h"

namespace stepcast {

// One training that competes for the pool.
struct PoolJob {
  std::string name, model;
  std::int64_t global_batch_sequences = 0;      // 0: default of plan_layouts()
  std::int64_t seq_len_tokens = 0;              // 0: default of the model
  double tokens = 0;                            // of the whole training
  std::optional<double> deadline_days;          // from the start
  std::int64_t weight = 1;                      // of its deadline, or of running at all
  std::optional<double> late_price_per_hour{};  // price of every hour after the deadline
};

// Most jobs in one pool.
inline constexpr std::size_t kMostPoolJobs = 64;

// Parses a TOML document of [[job]] tables with the keys name, model, gbs, seq, tokens or steps, deadline_days, weight and
// late_price_per_hour. `name` names the text in errors. Errors: unknown or missing keys, invalid numbers.
[[nodiscard]] Result<std::vector<PoolJob>> parse_pool_jobs(std::string_view text, const std::string& name);

// One possible share of the pool for a job, with its consequences.
struct PoolPart {
  std::int64_t size = 0;  // nodes
  bool misses = false;    // the deadline
  double cost = 0;        // money or days
};
// All possible shares of one job.
struct PoolChoices {
  std::vector<PoolPart> parts;
  std::int64_t weight = 1;
};

// The chosen part of each job; empty if the job does not run. Minimises the weight of jobs that miss their deadline or do not
// run, then the number of jobs that do not run, then the cost. Exact, by dynamic programming over the pool.
[[nodiscard]] std::vector<std::optional<std::size_t>> assign_parts(const std::vector<PoolChoices>& jobs,
                                                                   std::int64_t pool);

// A job with its options and the chosen one.
struct PooledJob {
  PoolJob job;
  std::vector<TrainingOption> curve;    // one option per number of GPUs, ascending, up to the pool
  std::optional<std::size_t> chosen{};  // index into `curve`; empty: the job does not run
  // Fewest GPUs that meet its deadline, searched up to eight pools.
  std::optional<std::int64_t> gpus_in_time{};
  // Days between its end and its deadline; negative if late. Empty without a deadline.
  [[nodiscard]] std::optional<double> slack_days() const;
  // Price of its GPU-hours and of being late; empty without a price.
  [[nodiscard]] std::optional<double> price(const TrainingOption& option) const;
};

// The plan of the whole pool.
struct JobPool {
  std::string platform;
  std::int64_t n_gpus = 0, gpus_per_node = 1;
  PlanObjective objective = PlanObjective::step_time;
  std::string currency{};  // of the prices, for reports; empty: any
  std::vector<PooledJob> jobs;
  std::int64_t n_used = 0;
  std::optional<std::int64_t> pool_in_time{};  // smallest pool with all jobs in time, if found
};

// `request` applies to every job, except for its model and batch. With as many deadlines met as possible, the objective (cost
// or step_time) is minimised: the total price, or the sum of the days. Errors: those of plan_training(); a pool smaller than
// a node.
[[nodiscard]] Result<JobPool> plan_jobs(const PlanRequest& request, const NamedPlatform& platform,
                                        std::int64_t n_gpus, const std::vector<PoolJob>& jobs);

}  // namespace stepcast

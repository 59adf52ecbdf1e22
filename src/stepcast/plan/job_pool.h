// Several trainings on one pool of GPUs: how many nodes each one gets.
//
// Model: all jobs run at the same time from the start, each on whole nodes of its own and until its end; nodes that one
// leaves are not given to another. How long a job takes on so many nodes is what plan_training() says.
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

struct PoolJob {
  std::string name, model;
  std::int64_t global_batch_sequences = 0;      // 0: as plan_layouts() takes it
  std::int64_t seq_len_tokens = 0;              // 0: that of the model
  double tokens = 0;                            // of the whole training
  std::optional<double> deadline_days;          // from the start
  std::int64_t weight = 1;                      // of its deadline, or of running at all
  std::optional<double> late_price_per_hour{};  // every hour behind the deadline costs this
};

inline constexpr std::size_t kMostPoolJobs = 64;

// A TOML document of [[job]] tables: name, model, gbs, seq, tokens or steps, deadline_days, weight,
// late_price_per_hour. `name` stands for the text in errors. Errors: what is not known, missing or no such number.
[[nodiscard]] Result<std::vector<PoolJob>> parse_pool_jobs(std::string_view text, const std::string& name);

// What a job may get: a part of the pool, and what that misses and costs.
struct PoolPart {
  std::int64_t size = 0;
  bool misses = false;  // the deadline
  double cost = 0;      // money or days
};
struct PoolChoices {
  std::vector<PoolPart> parts;
  std::int64_t weight = 1;
};

// The part of each job, nothing where it does not run: least weight of jobs that miss their deadline or do not run,
// then fewest that do not run, then least cost. Exact, by dynamic programming over the pool.
[[nodiscard]] std::vector<std::optional<std::size_t>> assign_parts(const std::vector<PoolChoices>& jobs,
                                                                   std::int64_t pool);

struct PooledJob {
  PoolJob job;
  std::vector<TrainingOption> curve;           // ascending GPUs, up to the pool
  std::optional<std::size_t> chosen{};         // of the curve
  std::optional<std::int64_t> gpus_in_time{};  // fewest that meet its deadline, up to eight pools
  // Positive where it ends before its deadline.
  [[nodiscard]] std::optional<double> slack_days() const;
  // Of its GPU-hours and of being late; nothing without a price.
  [[nodiscard]] std::optional<double> price(const TrainingOption& option) const;
};

struct JobPool {
  std::string platform;
  std::int64_t n_gpus = 0, gpus_per_node = 1;
  PlanObjective objective = PlanObjective::step_time;
  std::vector<PooledJob> jobs;
  std::int64_t n_used = 0;
  std::optional<std::int64_t> pool_in_time{};  // smallest pool where every job is in time, if any was found
};

// `request` holds for every job, without its model and batch. Its objective, cost or step_time, is what is least once as
// many deadlines as can be are met: money, or the sum of the days. Errors: those of plan_training(); a pool below a node.
[[nodiscard]] Result<JobPool> plan_jobs(const PlanRequest& request, const NamedPlatform& platform,
                                        std::int64_t n_gpus, const std::vector<PoolJob>& jobs);

}  // namespace stepcast

// The options of `stepcast plan`, and the questions with separate source files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/api/stepcast.h"
#include "stepcast/plan/restriction_words.h"
#include "stepcast/plan/training_plan.h"
#include "stepcast/rollout/rl_forecast.h"

#include "option_list.h"
#include "outputs.h"

namespace stepcast::cli {

using Words = std::vector<std::string>;

struct PlanOptions {
  explicit PlanOptions(CLI::App& app) : flags(app) {}
  Job job;
  Words platforms{"dgx-h100"};
  std::string framework, csv, from, jobs, within, objective = "time", failures;
  Words jitter, recovery, gpus, prices, zones;
  TrainingGoal goal;
  std::optional<std::int64_t> gpus_per_node;
  std::vector<std::int64_t> n_gpus;
  RestrictionWords space;
  Words what_if;
  std::string power_limit, power_budget;
  std::optional<double> memory_GiB;
  std::size_t top = 20;
  unsigned threads = 0;
  bool json = false, why = false, at_most = false;
  RlSettings rl;
  ReportOptions report;
  FlagList flags;
};

// Declares all options on `app`. `options` receives their values and must outlive `app`.
void declare_plan_options(CLI::App& app, PlanOptions& options);

// The question that the parsed flags ask. Errors: a flag that does not belong to it.
[[nodiscard]] Result<Question> question_of(const PlanOptions& options);

// The job of the flags. Errors: contradicting flags, words without a flag.
Result<Job> job_of(const PlanOptions& options);

// Parses prices: "2" for all platforms, or "dgx-a100=1.2" for one. `asked`: names of the platforms.
Status set_prices(const Words& words, std::vector<NamedPlatform>& platforms, const Words& asked,
                  TrainingGoal& goal);

// Input files, which results must not overwrite.
std::vector<std::filesystem::path> inputs_of(const PlanOptions& options);

// Whether layouts over pools of different GPUs are requested, and their plan.
bool plans_pools(const PlanOptions& options);
Result<int> run_pools(const PlanOptions& options);

// Plans a step of post-training.
Result<int> run_post_training(const PlanOptions& options);

}  // namespace stepcast::cli

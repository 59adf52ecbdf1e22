// What `stepcast plan` was asked, and the questions that have a file of their own.
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
  bool json = false, why = false;
  RlSettings rl;
  ReportOptions report;
  FlagList flags;
};

// Declares all of them on `app`; `options` takes their values and has to outlive it.
void declare_plan_options(CLI::App& app, PlanOptions& options);

// What is asked, once the flags are parsed. Errors: a flag that means nothing for it.
[[nodiscard]] Result<Question> question_of(const PlanOptions& options);

// The job in the words of its flags. Errors: flags that contradict each other, words without a flag.
Result<Job> job_of(const PlanOptions& options);

// "2" for all platforms, or "dgx-a100=1.2" for one each: `asked` are their names.
Status set_prices(const Words& words, std::vector<NamedPlatform>& platforms, const Words& asked,
                  TrainingGoal& goal);

// Files that are read, which results must not replace.
std::vector<std::filesystem::path> inputs_of(const PlanOptions& options);

// Layouts over pools of different GPUs.
bool plans_pools(const PlanOptions& options);
Result<int> run_pools(const PlanOptions& options);

// A step of post-training.
Result<int> run_post_training(const PlanOptions& options);

}  // namespace stepcast::cli

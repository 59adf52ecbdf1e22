// Compares shardings of the embedding tables of one job by the expected time of their steps.
//
//   STEPCAST_ASSIGN(const ShardingComparison all, compare_shardings({}, steps));   // the sharders and the search
//   all.shardings.front().plan, all.verdict()
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/analyze/forecast.h"
#include "stepcast/base/result.h"
#include "stepcast/recommend/dlrm.h"
#include "stepcast/recommend/dlrm_rank.h"
#include "stepcast/recommend/sharding_search.h"

namespace stepcast {

class DlrmStepModel;

// Which shardings are compared.
struct ShardingsToCompare {
  // Names of sharders (to_string(Sharder)), "search", or "stack" (stack_sharding()). Empty: all of them.
  std::vector<std::string> sharders;
  // Files with TorchRec sharding plans as JSON, to compare with.
  std::vector<std::filesystem::path> plans;
  // The TorchRec plan that the job runs now. It is compared as "now", and as "resharded" after a few moves if
  // they are worth it (reshard.h). If `sharders` is empty, nothing except these and `plans` is compared.
  std::filesystem::path now{};
  ShardingPlan now_plan{};  // the plan named by `now`, if it is not a file
  std::uint64_t seed = 1;   // of the random sharder and of the search
  // Limit of steps that the search evaluates, and of the seconds that it takes.
  std::size_t max_evaluations = SearchOptions{}.max_evaluations;
  double max_seconds = SearchOptions{}.max_seconds;  // that it takes
};

// Relative difference of step times below which two shardings are tied. Errors of the model are common to all
// shardings of a job, except for tables that are placed differently. The value is assumed.
inline constexpr double kShardingsAlike = 0.02;

// One sharding in a comparison.
struct ComparedSharding {
  ShardingPlan plan;
  DlrmStep step;
  // Step time in microseconds by which it is ranked: DlrmStepModel::expected_us().
  double expected_us = 0;
  // [rank] number of parts of tables.
  std::vector<std::size_t> tables;
  // True for the plan that results from a few moves of the running plan.
  bool is_resharded = false;
  // True for the reference of the comparison: the running plan, else the first of `plans`.
  bool is_given = false;
  // Tables that are placed differently than in the running plan: their number, and their weights and
  // optimizer state in bytes. 0 if no running plan is given.
  std::size_t moved_tables = 0;
  double moved_bytes = 0;
  // The rank that needs most memory.
  [[nodiscard]] const DlrmRank& fullest() const {
    return step.ranks[static_cast<std::size_t>(step.worst_rank)];
  }
  // Of the slowest rank: lookup time forward and backward in microseconds; most bytes that a rank sends in
  // the forward pass.
  [[nodiscard]] double most_lookups_us() const;
  [[nodiscard]] double most_sent_bytes() const;
};

// The result of a comparison.
struct ShardingComparison {
  Dlrm model;
  std::int64_t n_gpus = 0, gpus_per_node = 0, global_batch_samples = 0;
  // Sorted: those that fit first, then by expected_us.
  std::vector<ComparedSharding> shardings;
  // Lower bound for placements of whole tables, in microseconds.
  double least_step_us = 0;
  // Deviations from the request, for the user.
  std::vector<std::string> notes{};
  // Advice for the given plan. Set by callers that know the command line.
  std::optional<ForecastAdvice> what_to_change{};
  // The first sharding that fits and that TorchRec can express, so not a hybrid one. Null if there is none.
  [[nodiscard]] const ComparedSharding* first_torchrec_plan() const;
  // One sentence: the fastest sharding, and whether it is tied with the next.
  [[nodiscard]] std::string verdict() const;
};

// Predicts and compares the shardings. Errors: an unknown sharder, a plan that cannot be read or that does
// not fit the model and the number of ranks.
[[nodiscard]] Result<ShardingComparison> compare_shardings(const ShardingsToCompare& choices,
                                                           DlrmStepModel& steps);

}  // namespace stepcast

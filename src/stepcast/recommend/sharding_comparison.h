// Shardings of the embedding tables of one job beside each other, judged by the step that is expected of each.
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

struct ShardingsToCompare {
  std::vector<std::string> sharders;  // to_string(Sharder), "search", "stack" (stack_sharding()); empty: all
  std::vector<std::filesystem::path> plans;  // TorchRec's sharding plans as JSON, to compare with
  // Such a plan that the job runs now: compared as "now", and "resharded" what few moves make of it where that is worth
  // it (reshard.h). Without `sharders` of nothing else than with these and `plans`.
  std::filesystem::path now{};
  ShardingPlan now_plan{};  // that is in `now`, where it is no such file
  std::uint64_t seed = 1;   // of the random sharder and the search
  std::size_t max_evaluations = SearchOptions{}.max_evaluations;  // steps that the search simulates
  double max_seconds = SearchOptions{}.max_seconds;               // that it takes
};

// Shardings of one job err alike, but for the tables that they place differently: differences below this share of
// the step are not told apart. Assumed.
inline constexpr double kShardingsAlike = 0.02;

struct ComparedSharding {
  ShardingPlan plan;
  DlrmStep step;
  double expected_us = 0;           // what it is judged by: DlrmStepModel::expected_us
  std::vector<std::size_t> tables;  // [rank] parts of tables that it holds
  bool is_resharded = false;        // what few moves make of the plan that runs now
  bool is_given =
      false;  // what the others are held against: the plan that runs now, else the first of `plans`
  // Of tables that do not lie as they do now, weights and optimizer state; 0 without a plan that runs now.
  std::size_t moved_tables = 0;
  double moved_bytes = 0;
  [[nodiscard]] const DlrmRank& fullest() const {
    return step.ranks[static_cast<std::size_t>(step.worst_rank)];
  }
  // Of the busiest rank: lookups, forward and backward; bytes to other ranks in the forward pass.
  [[nodiscard]] double most_lookups_us() const;
  [[nodiscard]] double most_sent_bytes() const;
};

struct ShardingComparison {
  Dlrm model;
  std::int64_t n_gpus = 0, gpus_per_node = 0, global_batch_samples = 0;
  std::vector<ComparedSharding> shardings;         // those that fit first, by expected_us
  double least_step_us = 0;                        // no placement of whole tables is faster
  std::vector<std::string> notes{};                // what was taken otherwise than it was asked for
  std::optional<ForecastAdvice> what_to_change{};  // of the one that is given, by who knows the command line
  // The first that fits and that TorchRec has a plan for: not hybrid. Null pointer: none.
  [[nodiscard]] const ComparedSharding* first_torchrec_plan() const;
  // One sentence: which is the fastest, and whether it can be told from the next.
  [[nodiscard]] std::string verdict() const;
};

// Errors: a sharder that is not known, a plan that cannot be read or does not fit the model and the ranks.
[[nodiscard]] Result<ShardingComparison> compare_shardings(const ShardingsToCompare& choices,
                                                           DlrmStepModel& steps);

}  // namespace stepcast

// Targets for the results of suites, as data (data/targets.csv).
//
//   suite,test,of,metric,must,aim
//   kernels,held_out_rows,group gemm bf16,mape,<= 6,<= 4
//   kernels,held_out_rows,rows,interval_coverage,75 to 90,
//
//   STEPCAST_ASSIGN(const std::vector<TargetRow> rows, read_targets("data/targets.csv"));
//   result.targets = targets_of(result, rows);
//
// `of` selects a number of the test:
//   overall                       the mean over its sets
//   rows                          all its rows together
//   set NAME, group NAME          one of its sets or groups
//   largest set, smallest set     over its sets; `largest group`, `smallest group` over its groups
//   largest set of group NAME     over the sets of one group
//   mean of groups NAME; NAME     mean over these groups, which must all exist
//   share of sets                 percent of the sets that meet a condition on the metric: "mape <= 11"
// `metric` is a name of the JSON contract (docs/json.md), including extras. The test "*" means the sum over all tests. `must` and
// `aim` are "<= X" or ">= X"; `must` may also be "X to Y".
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

struct SuiteResult;

// A number and its targets.
struct Target {
  enum class Kind : std::uint8_t { at_most, at_least, between };
  std::string what;  // "held_out_rows, group gemm bf16: mean |error| %"
  double value = 0;
  Kind kind = Kind::at_most;
  std::optional<double> must, aim;  // upper or lower bounds; an aim is stricter
  double from = 0, to = 0;          // between
  // Whether `value` meets `must`; nullopt without a `must`.
  [[nodiscard]] std::optional<bool> met() const;
  // Whether `value` meets `aim`; nullopt without an `aim`.
  [[nodiscard]] std::optional<bool> aim_met() const;
};

// One row of the file: a target without its measured value.
struct TargetRow {
  std::string suite, test, of, metric;
  Target target;  // without `what` and `value`
};

// Errors name line and column: an unknown `of`, a `must` or `aim` that is not a bound, a row with neither.
[[nodiscard]] Result<std::vector<TargetRow>> parse_targets(std::string_view text, const std::string& name);
[[nodiscard]] Result<std::vector<TargetRow>> read_targets(const std::filesystem::path& file);

// The number that a row selects; nullopt if the result does not have the test, set, group or metric.
[[nodiscard]] std::optional<double> target_value(const SuiteResult& result, const TargetRow& row);

// The rows of this suite for which the result has a number, in the order of `rows`.
[[nodiscard]] std::vector<Target> targets_of(const SuiteResult& result, std::span<const TargetRow> rows);

}  // namespace stepcast

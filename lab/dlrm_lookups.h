// Scores the lookup model (cost/embedding_lookup.h) against lookup kernels of recorded training steps: files with
// the columns of modern/embedding/tbe_kernels_in_traces.csv. One value per distinct operator: the mean over steps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// One batched operator, forward or backward, as traces record it: totals over its tables.
struct MeasuredLookup {
  std::string set, gpu;
  bool backward = false, weighted = false;
  double tables = 0, batch = 0, lookups = 0;
  double sum_rows = 0, sum_rows_times_dim = 0, sum_dim = 0;
  double weight_bytes = 4, gradient_bytes = 4;
  double time_us = 0;  // of all its kernels, mean over steps
  std::size_t steps = 0;
};

[[nodiscard]] bool looks_like_lookups(std::string_view text);
[[nodiscard]] Result<std::vector<MeasuredLookup>> parse_lookups(std::string_view text,
                                                                const std::string& name);

// Adds the tests lookup_forward and lookup_backward (constants from the other sets), the same tests with the published
// heuristic, and ratios between sets with shipped constants.
void score_lookups(const std::vector<MeasuredLookup>& lookups, const SuiteOptions& options,
                   SuiteResult& result);

// Scores lookup models that are learned from measurements: trained on kernels timed by the independent reference
// (lab/sharding_reference.h), scored on kernels of tables outside of the training set.

// Adds the tests `learned_lookups`, forward and backward, and `learned_lookups_all_variants`. In the latter the longest bag
// limits forwards and the hottest row limits backwards, which no sum over tables shows. Each test also scores the analytic
// model. Kernels are drawn as in the published microbenchmark: 2 to 30 tables, 512 to 4,096 samples. Training and test
// tables come from two sets.
[[nodiscard]] Status score_learned_lookups(const SuiteOptions& options, SuiteResult& result);

}  // namespace stepcast

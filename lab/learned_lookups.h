// How well embedding lookups are learned from measurements: trained on kernels that the independent reference timed
// (lab/sharding_reference.h), judged on kernels of tables that training never saw.
#pragma once

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// Adds the tests `learned_lookups`, forward and backward, and `learned_lookups_all_variants`, where the longest bag binds
// forwards and the hottest row backwards, which no sum over tables tells; beside each what the analytic model says. Kernels
// are drawn as the published microbenchmark draws them: 2 to 30 tables, 512 to 4,096 samples; training and test tables come
// from two sets.
[[nodiscard]] Status score_learned_lookups(const SuiteOptions& options, SuiteResult& result);

}  // namespace stepcast

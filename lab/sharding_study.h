// Scores the quality of chosen shardings: twenty tasks by the rules of the published study, timed by the reference
// (sharding_reference.h), which no model knows. docs/dlrm.md lists the inputs of each side.
#pragma once

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// Adds the tests
//   sharding_choice  the predicted best of the six published sharders against the best of the six (heavy tasks)
//   sharding_search  the plan of the search against the best of the six (heavy tasks)
//   sharded_step     predicted steps at four batch sizes
// a set for every variant of the reference, or every batch size. Errors: the platform of the study is not installed.
[[nodiscard]] Status score_shardings(const SuiteOptions& options, SuiteResult& result);

}  // namespace stepcast

// The lists that restrict a search, as people write them: "none,full", "1f1b", "hybrid:2".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/plan/layout_space.h"

namespace stepcast {

// Empty lists restrict nothing.
struct RestrictionWords {
  std::vector<std::int64_t> tensor, pipeline, context, expert, expert_tensor, micro_batch, virtual_stages;
  std::vector<std::string> shardings, recomputations, sequence_parallel, dtypes, schedules;
};

// Errors: a word that none of the lists knows, by its flag (--recompute), with those that it knows.
[[nodiscard]] Result<LayoutRestrictions> restrictions_of(const RestrictionWords& words);

}  // namespace stepcast

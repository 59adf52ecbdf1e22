// The lists that restrict a search, as people write them: "none,full", "1f1b", "hybrid:2".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/plan/layout_space.h"

namespace stepcast {

// Empty lists restrict nothing.
struct RestrictionWords {
  std::vector<std::int64_t> tensor, pipeline, context, expert, expert_tensor, micro_batch, virtual_stages;
  std::vector<std::string> shardings, recomputations, sequence_parallel, dtypes, schedules;
};

// Errors: a word that none of the lists knows, by its flag (--recompute), with those that it knows.
[[nodiscard]] Result<LayoutRestrictions> restrictions_of(const RestrictionWords& words);

// That the software can share out what a word of --sharding says. Errors: it cannot, by its name, with what it can.
[[nodiscard]] Status check_sharding(Framework framework, const std::string& word);
// The same of flags of Megatron-LM.
[[nodiscard]] Status check_sharding(Framework framework, const JobSettings& flags);

// One word of some of these lists, for one layout; empty: not said.
struct LayoutWords {
  std::string schedule, sharding, sequence_parallel, recompute;
};

// Says them in the settings of a job. `flags` is what flags of one layout say. Errors: those of restrictions_of(), a word
// that contradicts a flag, hybrid sharding.
[[nodiscard]] Status apply(const LayoutWords& words, const JobSettings& flags, JobSettings& to);

}  // namespace stepcast

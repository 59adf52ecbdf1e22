// Parses the lists that restrict a search: "none,full", "1f1b", "hybrid:2".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/plan/layout_space.h"

namespace stepcast {

// Lists of the user; an empty list does not restrict.
struct RestrictionWords {
  std::vector<std::int64_t> tensor, pipeline, context, expert, expert_tensor, micro_batch, virtual_stages;
  std::vector<std::string> shardings, recomputations, sequence_parallel, dtypes, schedules;
};

// Errors: an unknown word of a list, with its flag (such as --recompute) and the allowed words.
[[nodiscard]] Result<LayoutRestrictions> restrictions_of(const RestrictionWords& words);

// Error: the framework does not support this word of --sharding; the message lists what it supports.
[[nodiscard]] Status check_sharding(Framework framework, const std::string& word);
// The same check for Megatron-LM flags.
[[nodiscard]] Status check_sharding(Framework framework, const JobSettings& flags);

// Words for a single layout; empty: not given.
struct LayoutWords {
  std::string schedule, sharding, sequence_parallel, recompute;
};

// Stores the words in the settings of a job. `flags`: settings from flags of a single layout. Errors: those of
// restrictions_of(), a word that contradicts a flag, hybrid sharding.
[[nodiscard]] Status apply(const LayoutWords& words, const JobSettings& flags, JobSettings& to);

}  // namespace stepcast

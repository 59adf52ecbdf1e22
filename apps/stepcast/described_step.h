// A step that nobody recorded, in the words of `stepcast predict`: the command line and the Python package mean the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/result.h"
#include "stepcast/plan/job_words.h"

namespace stepcast::cli {

struct DescribedStep : JobWords {
  PredictRequest request;                   // what our own flags say
  std::vector<std::string> megatron_flags;  // hold over `command_line`
  std::vector<std::string> own_flags;  // those that are none of Megatron's, which a mistyped one may mean
  std::vector<std::string> measured;   // steps: words, tables of runs, logs; "none"
  std::string open_layout;             // a word of `--layout`; empty: not said
  std::optional<std::int64_t> nodes;   // of the platform, instead of GPUs
  bool platform_is_named = false;      // and not left to the default
};

// What shows which subject a step is of, in the words of flags: config and command line are names of files, or the latter
// itself. Files alone are looked into: a pipe can be read once.
[[nodiscard]] Job job_as_named(const std::string& model, const std::string& config,
                               const std::string& command_line);

// Errors: words that are not known, files that cannot be read, what contradicts itself.
[[nodiscard]] Result<PredictRequest> request_of(const DescribedStep& step);

// What was left to us and what may have been meant otherwise, before the other notes.
void add_notes(const DescribedStep& step, Forecast& forecast);

}  // namespace stepcast::cli

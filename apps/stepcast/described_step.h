// A described step with the options of `stepcast predict`, shared by the command line and the Python package.
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
  PredictRequest request;                   // from our flags
  std::vector<std::string> megatron_flags;  // override `command_line`
  std::vector<std::string> own_flags;       // flags other than Megatron's, as candidates for suggestions
  std::vector<std::string> measured;        // measured steps: words, tables of runs, logs; or "none"
  std::string open_layout;                  // value of `--layout`; empty: not given
  std::optional<std::int64_t> nodes;        // number of nodes, instead of GPUs
  bool platform_is_named = false;           // not the default
};

// The parts of a job that determine its subject. `config` and the command line are names of files, or the
// command line itself. Only regular files are opened, because a pipe can be read only once.
[[nodiscard]] Job job_as_named(const std::string& model, const std::string& config,
                               const std::string& command_line);

// The request for a step. Errors: unknown words, unreadable files, contradictions.
[[nodiscard]] Result<PredictRequest> request_of(const DescribedStep& step);

// Adds notes about assumptions and ambiguous options before the other notes.
void add_notes(const DescribedStep& step, Forecast& forecast);

}  // namespace stepcast::cli

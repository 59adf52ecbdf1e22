// Configs and command lines of other software for post-training -> a question: NeMo-RL, verl, OpenRLHF.
//
//   RlQuestion question{.job = {.config = *read_config_text("grpo.yaml")}, .settings = {.lengths = "mean=3200"}};
//   STEPCAST_ASSIGN(question, with_rl_config(question, notes));
//
// NeMo-RL and verl are read as YAML, or as command lines with `path=value` (NeMo-RL's `--config FILE` is read below them,
// and so are the files that `defaults` names); OpenRLHF by its flags. Which one it is shows in the names. Keys that change
// no time (tables/rl_keys.csv) are passed over, and every other key that does not act is in Job::not_modelled; one that is
// spelled almost like one that acts is a note as well.
#pragma once

#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/rollout/rl_step.h"

namespace stepcast {

// Whether `config` or `command_line` of the job is of one of them.
[[nodiscard]] bool is_rl_config(const Job& job);

// What the config or command line says under what `said` says, and without them. "mean=3200" gets the maximum of the
// config. Errors: not YAML; of none of these; no model, GPUs, prompts or lengths, with what to say; a value of the wrong
// kind; supervised training.
[[nodiscard]] Result<RlQuestion> with_rl_config(const RlQuestion& said, std::vector<std::string>& notes);

}  // namespace stepcast

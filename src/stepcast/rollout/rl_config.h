// Reads post-training configs and command lines of NeMo-RL, verl and OpenRLHF as questions.
//
//   RlQuestion question{.job = {.config = *read_config_text("grpo.yaml")}, .settings = {.lengths = "mean=3200"}};
//   STEPCAST_ASSIGN(question, with_rl_config(question, notes));
//
// NeMo-RL and verl are read as YAML or as command lines with `path=value`. A file given by NeMo-RL's `--config FILE` and the
// files in `defaults` provide values for keys that are not given. OpenRLHF is read by its flags. Key names determine the
// framework. Keys without effect on time (tables/rl_keys.csv) are ignored; all other unused keys go to Job::not_modelled.
// Keys that resemble a used key also give a note.
#pragma once

#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"
#include "stepcast/rollout/rl_step.h"

namespace stepcast {

// True if `config` or `command_line` of the job belongs to one of the three frameworks.
[[nodiscard]] bool is_rl_config(const Job& job);

// The question with the values of its config or command line for everything `said` does not set; both are removed. "mean=3200"
// gets the maximum of the config. Errors: invalid YAML; an unknown framework; missing model, GPUs, prompts or lengths, with
// advice; a value of the wrong type; supervised training.
[[nodiscard]] Result<RlQuestion> with_rl_config(const RlQuestion& said, std::vector<std::string>& notes);

}  // namespace stepcast

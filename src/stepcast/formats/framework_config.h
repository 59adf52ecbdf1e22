// Configs of training frameworks in YAML or JSON -> a Job: NeMo 2 and Megatron-Bridge, NeMo Automodel, Axolotl,
// LLaMA-Factory, TRL, ms-swift, Hugging Face's Trainer, Nanotron, torchtune, MaxText. Which one it is shows in its keys.
//
//   Job job{.n_gpus = 8};
//   STEPCAST_ASSIGN(job.config, read_config_text("sft.yaml"));
//   STEPCAST_ASSIGN(const ResolvedJob resolved, resolve(job));
//
// Of each framework one table says which keys act, which change time or memory and are not priced (listed), and which are
// passed over. A key that is in none of them is listed as well; an error where job.strict.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

struct FrameworkConfig {
  std::string framework;  // as people call it: "Axolotl"
  Job job;                // `said` over what the config says, without the config
  std::vector<std::string> notes;
};

// `said.config` must be there. Errors: not YAML; of no framework that is known (they name the one it looks like and the key
// that is missing); a value of the wrong kind; a model by a name that is no preset, where `said` names none.
[[nodiscard]] Result<FrameworkConfig> parse_framework_config(const Job& said);

// Which products get adapters, in the words of JobSettings::lora_targets: of names of Hugging Face's modules or Megatron
// Core's, of a regular expression of such, or of "all", "all-linear". Nothing where none of them is named.
[[nodiscard]] std::string adapter_products(std::string_view names);

// Of MaxText's parameters as it prints them when it starts ("key: value", a line each), all of them: those that a table has.
[[nodiscard]] std::string known_maxtext_keys(std::string_view parameters);

}  // namespace stepcast

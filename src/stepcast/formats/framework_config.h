// Reads YAML or JSON configs of training frameworks into a Job: NeMo 2 and Megatron-Bridge, NeMo Automodel,
// Axolotl, LLaMA-Factory, TRL, ms-swift, verl, Hugging Face's Trainer, Nanotron, torchtune, MaxText. The
// framework is recognised by the keys of the config.
//
//   Job job{.n_gpus = 8};
//   STEPCAST_ASSIGN(job.config, read_config_text("sft.yaml"));
//   STEPCAST_ASSIGN(const ResolvedJob resolved, resolve(job));
//
// A table per framework says which keys are settings, which ones change time or memory without being priced,
// and which ones are ignored. Other keys are listed as not modelled, or are errors if job.strict.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

// The result of reading a config.
struct FrameworkConfig {
  std::string framework;  // the name of the framework: "Axolotl"
  Job job;                // the given job with the settings of the config, without the config
  // Notes for the user about assumptions.
  std::vector<std::string> notes;
};

// `said.config` must be set. Errors: invalid YAML, an unknown framework (the error names the most similar one
// and its missing key), a value of the wrong kind, a model that is not a preset if `said` has none.
[[nodiscard]] Result<FrameworkConfig> parse_framework_config(const Job& said);

// The GEMMs with adapters, in the words of JobSettings::lora_targets. `names`: names of Hugging Face or
// Megatron Core modules, a regular expression of these, "all" or "all-linear". Empty if it matches none.
[[nodiscard]] std::string adapter_products(std::string_view names);

// Filters the parameters that MaxText prints at the start ("key: value" lines): those that the table of MaxText has.
[[nodiscard]] std::string known_maxtext_keys(std::string_view parameters);

}  // namespace stepcast

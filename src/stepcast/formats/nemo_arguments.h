// Settings of NeMo, Megatron-Bridge and LLM Foundry as YAML in the words of other descriptions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"
#include "stepcast/base/yaml_document.h"
#include "stepcast/describe/job.h"
#include "stepcast/formats/framework_config.h"

namespace stepcast::detail {

// Arguments of Megatron-LM under its own names, from the `model`, `train` and `trainer` sections; empty where there are
// no layers. Sets the GPUs where devices and nodes are there.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> megatron_arguments_of(
    const YamlScalars& yaml, std::optional<std::int64_t>& n_gpus);

// LLM Foundry's: a decoder of d_model and n_layers, its batch and its sharding. Nothing where the document is not its.
[[nodiscard]] std::optional<Job> foundry_job(const YamlScalars& yaml);

// Configs of NeMo 2 and Megatron-Bridge as a job: a model in Megatron's own words, or a class that stands for one.
// Fills `out` from the document of `said.config`; errors as parse_framework_config() has them.
[[nodiscard]] Status read_nemo_config(const JsonValue& root, const Job& said, FrameworkConfig& out);

}  // namespace stepcast::detail

// Converts configs of NeMo, Megatron-Bridge and LLM Foundry into other descriptions of a job.
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

// Arguments of Megatron-LM from the sections `model`, `train` and `trainer`. Empty if the config has no
// layers. Sets `n_gpus` if devices and nodes are given.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> megatron_arguments_of(
    const YamlScalars& yaml, std::optional<std::int64_t>& n_gpus);

// A config of LLM Foundry as a job: a decoder by d_model and n_layers, with batch and sharding. Nothing if it
// is another config.
[[nodiscard]] std::optional<Job> foundry_job(const YamlScalars& yaml);

// Reads a config of NeMo 2 or Megatron-Bridge: a model described by Megatron-LM's sizes, or by a class that
// is a preset. `root` is the document of `said.config`; the result is in `out`. Errors: as in
// parse_framework_config().
[[nodiscard]] Status read_nemo_config(const JsonValue& root, const Job& said, FrameworkConfig& out);

}  // namespace stepcast::detail

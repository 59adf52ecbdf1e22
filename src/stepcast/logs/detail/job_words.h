// TorchTitan's settings out of its log, as the TOML that describe/torchtitan.h reads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast::detail {

// From the dump of the whole config, JSON or a Python dict; keys that change neither time nor memory are left out.
[[nodiscard]] Result<std::string> torchtitan_toml(std::string_view dump, const std::string& file);

// From what single lines say ("titan_model", "titan_mesh", "titan_local_batch", ...).
[[nodiscard]] std::string torchtitan_toml_of_words(
    const std::map<std::string, std::string, std::less<>>& words);

// "['dp_shard', 'tp'], [4, 2]" or "parallelism: pp=1, dp_replicate=1, dp_shard=8, ...": the product of all degrees.
[[nodiscard]] std::optional<std::int64_t> torchtitan_gpus(std::string_view mesh);

// Settings of NeMo 1, Megatron-Bridge and LLM Foundry in the words of other descriptions.

using YamlScalars = std::map<std::string, std::string, std::less<>>;

// Arguments of Megatron-LM under its own names, from the `model`, `train` and `trainer` sections; empty where there are
// no layers. Sets the GPUs where devices and nodes are there.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> megatron_arguments_of(
    const YamlScalars& yaml, std::optional<std::int64_t>& n_gpus);

// LLM Foundry's: a decoder of d_model and n_layers, its batch and its sharding. Nothing where the document is not its.
[[nodiscard]] std::optional<Job> foundry_job(const YamlScalars& yaml);

}  // namespace stepcast::detail

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

}  // namespace stepcast::detail

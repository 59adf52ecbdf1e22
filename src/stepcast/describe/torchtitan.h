// TorchTitan job configs (TOML) -> model and layout.
//
//   STEPCAST_ASSIGN(const DescribedJob job, read_torchtitan_config("llama3_70b.toml", {.n_gpus = 256}));
//
// Keys and defaults are those of torchtitan, of its first releases too ([training] and [experimental] for
// what became [parallelism]). Sections on logs, checkpoints and data are passed over; keys that change time
// or memory and are not modelled are listed; others are errors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/describe/described_job.h"

namespace stepcast {

struct TorchTitanOptions {
  std::optional<Transformer> model;    // instead of [model] name and flavor
  std::optional<std::int64_t> n_gpus;  // needed where data_parallel_shard_degree is -1 (its default)
};

// `name` stands for the text in errors.
[[nodiscard]] Result<DescribedJob> parse_torchtitan_config(std::string_view text, const std::string& name,
                                                           const TorchTitanOptions& options);
[[nodiscard]] Result<DescribedJob> read_torchtitan_config(const std::filesystem::path& file,
                                                          const TorchTitanOptions& options);

}  // namespace stepcast

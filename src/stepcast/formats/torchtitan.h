// TorchTitan job configs (TOML) -> model and layout.
//
//   Job job{.n_gpus = 256};
//   STEPCAST_ASSIGN(job.torchtitan, read_config_text("llama3_70b.toml"));
//   STEPCAST_ASSIGN(const ResolvedJob resolved, resolve(job));
//
// Keys and defaults are those of torchtitan, of its first releases too ([training] and [experimental] for
// what became [parallelism]). Sections on logs, checkpoints and data are passed over; keys that change time
// or memory and are not modelled are listed; others are errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

struct TorchTitanOptions {
  std::optional<Transformer> model;    // instead of [model] name and flavor
  std::optional<std::int64_t> n_gpus;  // needed where data_parallel_shard_degree is -1 (its default)
  JobSettings said;                    // hold against the config
};

// `name` stands for the text in errors. Settings that a TorchTitan config has no like of are refused.
[[nodiscard]] Result<ResolvedJob> parse_torchtitan_config(std::string_view text, const std::string& name,
                                                          const TorchTitanOptions& options);

}  // namespace stepcast

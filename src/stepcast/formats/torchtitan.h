// Reads TorchTitan job configs (TOML) into a model and a layout.
//
//   Job job{.n_gpus = 256};
//   STEPCAST_ASSIGN(job.torchtitan, read_config_text("llama3_70b.toml"));
//   STEPCAST_ASSIGN(const ResolvedJob resolved, resolve(job));
//
// Keys and defaults are those of torchtitan, including its first releases, in which [training] and
// [experimental] had the keys of today's [parallelism]. Sections about logs, checkpoints and data are
// ignored. Keys that change time or memory and are not modelled are listed. Unknown keys are errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/describe/job.h"

namespace stepcast {

// What the caller adds to a config.
struct TorchTitanOptions {
  std::optional<Transformer> model;    // replaces name and flavor of [model]
  std::optional<std::int64_t> n_gpus;  // needed if data_parallel_shard_degree is -1, which is the default
  JobSettings said;                    // settings that override the config
};

// `name` denotes the text in errors. Errors: invalid TOML, unknown keys, settings in `said` that a TorchTitan
// config cannot express, a layout that cannot run.
[[nodiscard]] Result<ResolvedJob> parse_torchtitan_config(std::string_view text, const std::string& name,
                                                          const TorchTitanOptions& options);

}  // namespace stepcast

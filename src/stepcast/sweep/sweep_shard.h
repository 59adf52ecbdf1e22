// The share of a sweep that one process runs: shard i of n. It is given on the command line or read from the
// environment of the cluster's batch system.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "stepcast/base/result.h"
#include "stepcast/sweep/sweep_spec.h"

namespace stepcast {

// Shard `index` of `count`.
struct SweepShard {
  std::uint32_t index = 0, count = 1;  // counted from 0
  // The environment variable that set the index ("SLURM_ARRAY_TASK_ID"). Empty: given by --shard, or the
  // whole sweep.
  std::string origin{};
  // Whether the point belongs to this shard. This depends on the id of the point and not on its position, so
  // points keep their shard when the list grows.
  [[nodiscard]] bool has(const SweepPoint& point) const;
  // The name of the shard's row file: "shard-0002-of-0016.jsonl".
  [[nodiscard]] std::string file_name() const;
};

// Parses "i/n" with i from 0 to n - 1: "2/16" is the third of sixteen shards. Errors: any other text, as
// "16/16".
[[nodiscard]] Result<SweepShard> parse_shard(const std::string& text);

// Returns the value of an environment variable, or nothing if it is not set. A parameter so that tests can
// replace the environment.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// The shard that the batch system assigns. A Slurm array sets index and count (SLURM_ARRAY_TASK_ID, _MIN,
// _MAX, _STEP, _COUNT). An Indexed Job of Kubernetes sets only the index (JOB_COMPLETION_INDEX), so `count`
// is required there. Without these variables, the result is the whole sweep; a `count` above 1 is then an
// error. Errors: values that are not integers, an index that is not below the count, an array with gaps, a
// `count` that contradicts the array.
[[nodiscard]] Result<SweepShard> shard_of_environment(const Environment& environment,
                                                      std::optional<std::uint32_t> count);

}  // namespace stepcast

// Which part of a sweep a process does: shard i of n, as it is told or as the batch system of the cluster says.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "stepcast/base/result.h"
#include "stepcast/sweep/sweep_spec.h"

namespace stepcast {

struct SweepShard {
  std::uint32_t index = 0, count = 1;  // from 0 on
  std::string origin{};                // "SLURM_ARRAY_TASK_ID"; empty: told, or the whole
  // By its id, and not by its place in the list: points stay where they are when the list grows.
  [[nodiscard]] bool has(const SweepPoint& point) const;
  // "shard-0002-of-0016.jsonl".
  [[nodiscard]] std::string file_name() const;
};

// "2/16": the third of sixteen. Errors: anything else, 16/16 among it.
[[nodiscard]] Result<SweepShard> parse_shard(const std::string& text);

// The value of an environment variable; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// A Slurm array says index and count (SLURM_ARRAY_TASK_ID, _MIN, _MAX, _STEP, _COUNT), an Indexed Job of Kubernetes its
// index alone (JOB_COMPLETION_INDEX): `count` has to be given there and must not contradict the array. The whole where
// none of them is set. Errors: numbers that are none, an index beyond the count, an array with gaps.
[[nodiscard]] Result<SweepShard> shard_of_environment(const Environment& environment,
                                                      std::optional<std::uint32_t> count);

}  // namespace stepcast

// How a job is brought back after an interruption: what it wrote, and where it goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/run/failures.h"

namespace stepcast {

// sync: training stands still until the checkpoint is on storage. async: until it is in the memory of the host, from where
// it is written. memory: the same, and it is copied to another node instead, from where it is read again.
enum class CheckpointMode : std::uint8_t { sync, async, memory };
[[nodiscard]] std::string_view to_string(CheckpointMode mode);

struct Recovery {
  std::optional<CheckpointMode> mode{};  // nothing: as the job says, or sync
  // Of training between two checkpoints; nothing: as the job says, or the best.
  std::optional<double> interval_s{};
  std::optional<double> storage_GBps{};  // of all ranks together; nothing: by the GPUs, as in a published job
  double restart_s = 900;  // from the interruption to reading the checkpoint: found, replaced, started
  std::optional<std::int64_t> spare_nodes{};  // nothing: always enough, and not counted
  double repair_s = 86400;                    // of a node
  bool elastic =
      false;  // without spare nodes it goes on with fewer data-parallel replicas instead of waiting
};

struct RunPool;  // run_forecast.h

struct RunAssumptions {
  FailureRates failures{};
  Recovery recovery{};
};

// `failures`: "default" or a log. `recovery`: words "interval=30m", "mode=async", "storage=200GB/s", "restart=15m",
// "spares=8", "repair=24h", "elastic=yes". Of a job on several `pools` also "h100=default,a100=a100.csv". Errors: those of
// the log, unknown words, times that are not above 0, a pool without rates.
[[nodiscard]] Result<RunAssumptions> read_run_assumptions(const std::string& failures,
                                                          const std::vector<std::string>& recovery,
                                                          std::span<const RunPool> pools = {});
[[nodiscard]] Result<Recovery> read_recovery(const std::vector<std::string>& recovery);

}  // namespace stepcast

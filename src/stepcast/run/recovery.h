// Recovery of a job after an interruption: checkpoints, restart and spare nodes.
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

// sync: training stops until the checkpoint is on storage. async: until it is in host memory, from where it is written to
// storage. memory: as async, but copied to another node instead of storage and read back from there.
enum class CheckpointMode : std::uint8_t { sync, async, memory };
[[nodiscard]] std::string_view to_string(CheckpointMode mode);

// Assumptions about checkpoints and restarts.
struct Recovery {
  std::optional<CheckpointMode> mode{};  // empty: as in the job, else sync
  // Training time between two checkpoints; empty: as in the job, else the best one.
  std::optional<double> interval_s{};
  // Of all ranks together; empty: in proportion to the GPUs, as in a published job.
  std::optional<double> storage_GBps{};
  // From the interruption to the read of the checkpoint: detection, replacement, start.
  double restart_s = 900;
  std::optional<std::int64_t> spare_nodes{};  // empty: always enough, and not counted as allocated
  double repair_s = 86400;                    // of one node
  // True: without spare nodes training continues with fewer data-parallel replicas. False: it waits for repair.
  bool elastic = false;
};

struct RunPool;  // run_forecast.h

// Everything assumed about interruptions of a run.
struct RunAssumptions {
  FailureRates failures{};
  Recovery recovery{};
};

// `failures`: "default" or a log; for a job on several `pools` also "h100=default,a100=a100.csv". `recovery`: words such as
// "interval=30m", "mode=async", "storage=200GB/s", "restart=15m", "spares=8", "repair=24h", "elastic=yes". Errors: those of
// the log, unknown words, times not above 0, a pool without rates.
[[nodiscard]] Result<RunAssumptions> read_run_assumptions(const std::string& failures,
                                                          const std::vector<std::string>& recovery,
                                                          std::span<const RunPool> pools = {});
// Only the words of `recovery`, as above.
[[nodiscard]] Result<Recovery> read_recovery(const std::vector<std::string>& recovery);

}  // namespace stepcast

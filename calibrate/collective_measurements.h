// Measured times of collectives, read from several file formats.
//
//   STEPCAST_ASSIGN(MeasuredCollectives m, read_collective_measurements("all_reduce.log"));
//   for (const CollectiveMeasurements& curve : m.curves) ...
//
// Formats, recognised by content:
//   nccl-tests      text, old and new columns, several collectives in one log; the out-of-place times
//   nccl-tests      JSON (-J)
//   PARAM comms     log with COMMS-RES lines; the median latency
//   long CSV        one row per measurement with the header docs/collectives.md gives; many platforms
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/collective_kind.h"
#include "stepcast/operation/dtype.h"

namespace stepcast {

struct CollectiveSample {
  double message_bytes = 0;  // `size` of nccl-tests
  double time_us = 0;
  DType dtype = DType::unknown;
  std::uint32_t hash = 0;  // row_hash() of the identifying cells; 0: not computed
};

// All measurements of one collective on one group of ranks.
struct CollectiveMeasurements {
  std::string platform;  // from the file; empty if it does not name one
  std::string gpu;
  std::string interconnect;
  CollectiveOp collective = CollectiveOp::unknown;
  std::uint32_t n_nodes = 1, gpus_per_node = 1, n_ranks = 1;
  std::vector<CollectiveSample> samples;
  std::vector<std::string> sources;  // runs or projects, without repeats

  // "a100_sxm/all_reduce/8", "azure/all_reduce/2x8": ranks of one node, or nodes x ranks of each.
  [[nodiscard]] std::string name() const;
};

struct UnusedRows {
  std::string what, why;
  std::uint64_t n = 0;
};

struct MeasuredCollectives {
  std::string format;
  std::vector<CollectiveMeasurements> curves;  // ordered by platform, collective, nodes, ranks
  std::vector<UnusedRows> unused;

  // Adds the curves of another file; equal groups are joined.
  void add(MeasuredCollectives other);
};

// Values that a log may not state. A value given here overrides the log; a number of ranks that contradicts its list of
// ranks is an error.
struct MeasurementContext {
  CollectiveOp collective = CollectiveOp::unknown;
  std::uint32_t n_ranks = 0, gpus_per_node = 0;
  std::string platform;
};

[[nodiscard]] Result<MeasuredCollectives> read_collective_measurements(
    const std::filesystem::path& file, const MeasurementContext& context = {});
// The same from the printed text. `name` names it in errors and may contain the collective ("all_gather_perf.log").
[[nodiscard]] Result<MeasuredCollectives> parse_collective_measurements(
    std::string_view printed, const std::string& name, const MeasurementContext& context = {});

}  // namespace stepcast

// Reads the embedding tables of a recorded job, and the ranks that held them, from the lookups in the
// execution traces of its ranks.
//
// Limitation: for the tables of one kernel, a trace has only the sums of rows, columns and lookups. They are
// treated as equal tables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/recommend/dlrm.h"
#include "stepcast/recommend/dlrm_job.h"

namespace stepcast::detail {

// What execution traces say about the tables of a job.
struct RecordedTables {
  std::vector<EmbeddingTable> tables;
  ShardingPlan plan;              // the recorded placement of the tables
  std::int64_t global_batch = 0;  // samples
};

// Errors: no execution trace, or none with a lookup of embedding tables.
[[nodiscard]] Result<RecordedTables> recorded_tables(const std::filesystem::path& folder);

// Whether an input for tables or a plan is a folder or archive of traces (instead of a file).
[[nodiscard]] bool is_trace_folder(const std::filesystem::path& place);
// Reads the tables of a CSV file or a folder of traces into the job. Traces also set the global batch, unless
// the job has one.
[[nodiscard]] Status take_tables(const std::string& place, DlrmJob& job);

}  // namespace stepcast::detail

// The embedding tables of a job that was traced, and the ranks that have them: what the lookups in the execution traces of
// its ranks were called with.
//
// Of the tables that one kernel looks up a trace tells rows, columns and lookups together: they count as equal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/recommend/dlrm.h"
#include "stepcast/recommend/dlrm_job.h"

namespace stepcast::detail {

struct RecordedTables {
  std::vector<EmbeddingTable> tables;
  ShardingPlan plan;              // as the ranks had them
  std::int64_t global_batch = 0;  // samples
};

// Errors: no execution trace of a rank, no lookup in any of them.
[[nodiscard]] Result<RecordedTables> recorded_tables(const std::filesystem::path& folder);

// Whether an input for tables or a plan is a folder of traces.
[[nodiscard]] bool is_trace_folder(const std::filesystem::path& place);
// The tables of a CSV file, or of a folder of traces with their batch, unless the job has one.
[[nodiscard]] Status take_tables(const std::string& place, DlrmJob& job);

}  // namespace stepcast::detail

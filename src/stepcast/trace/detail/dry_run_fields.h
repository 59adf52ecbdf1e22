// Reads the fields of `stepcast dryrun` records that PyTorch's execution traces do not have;
// docs/dry-run-record.md lists them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/base/string_table.h"
#include "stepcast/trace/execution_trace.h"

namespace stepcast::detail {

// Reads the member "stepcast" of a record, including the calls after its last node. Error: a record of
// another format.
[[nodiscard]] Status read_dry_run(std::string_view json, const std::string& file, ExecutionTrace& trace);

// Appends the runtime calls before node `before` from a text such as "record 7 12; wait 0 12; sync_device".
// Unknown calls are left out.
void read_runtime_calls(std::string_view text, std::uint32_t before, std::vector<EtRuntimeCall>& calls);

// Reads the JSON list of process groups that PyTorch writes at its start: `[{"pg_name": "0", "pg_size": 8,
// "ranks": []}, ...]`.
[[nodiscard]] std::vector<EtGroup> read_groups(std::string_view json, StringTable& names);

}  // namespace stepcast::detail

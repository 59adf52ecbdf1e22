// What records of `stepcast dryrun` hold beyond PyTorch's execution traces; docs/dry-run-record.md lists it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/base/string_table.h"
#include "stepcast/trace/execution_trace.h"

namespace stepcast::detail {

// Reads the member "stepcast" of a record, with the calls behind its last node. Errors: a record of another format.
[[nodiscard]] Status read_dry_run(std::string_view json, const std::string& file, ExecutionTrace& trace);

// "record 7 12; wait 0 12; sync_device": appends the calls that stand before node `before`. What is not known is left out.
void read_runtime_calls(std::string_view text, std::uint32_t before, std::vector<EtRuntimeCall>& calls);

// The JSON list of process groups that PyTorch writes at their start: `[{"pg_name": "0", "pg_size": 8, "ranks": []}, ...]`.
[[nodiscard]] std::vector<EtGroup> read_groups(std::string_view json, StringTable& names);

}  // namespace stepcast::detail

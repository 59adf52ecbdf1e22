// The Operations behind the operators of an execution trace, as a table and as JSON.
#pragma once

#include <string>

#include "stepcast/base/json_writer.h"
#include "stepcast/trace/traced_operations.h"

namespace stepcast {

// `coverage` holds times where a profiler trace of the same run stands beside; nullptr: none.
[[nodiscard]] std::string operations_text(const ExecutionTrace& trace, const TracedOperations& traced,
                                          const KernelTimeCoverage* coverage);

// One object.
void operations_json(const ExecutionTrace& trace, const TracedOperations& traced,
                     const KernelTimeCoverage* coverage, JsonWriter& json);

}  // namespace stepcast

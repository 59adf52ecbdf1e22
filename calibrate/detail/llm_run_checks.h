// Rows of measured steps that say what cannot be.
#pragma once

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/result.h"

#include "calibrate/llm_runs.h"

namespace stepcast::detail {

// An Error where the current row misspells its software, names a norm that there is not, or says GPUs and sequences per
// step that are not the products of what it says of the layout. `run` has its GPUs, degrees and batch already.
[[nodiscard]] Status check_run(const CsvRows& rows, const LlmRun& run);

}  // namespace stepcast::detail

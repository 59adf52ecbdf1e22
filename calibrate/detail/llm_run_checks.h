// Checks rows of measured steps for contradictions.
#pragma once

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/result.h"

#include "calibrate/llm_runs.h"

namespace stepcast::detail {

// An Error if the current row misspells its software, names an unknown norm, or states GPUs or sequences per step that do
// not agree with its layout (degrees, micro-batch and accumulation). `run` must have its GPUs, degrees and batch.
[[nodiscard]] Status check_run(const CsvRows& rows, const LlmRun& run);

}  // namespace stepcast::detail

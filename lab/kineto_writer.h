// Writes a RecordedRank as a profiler trace (Chrome JSON in the form of the PyTorch profiler), the inverse of read_kineto.
#pragma once

#include <filesystem>
#include <string>

#include "stepcast/base/result.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

// Returns the document as text. Times are in microseconds with three decimals, relative to `baseTimeNanoseconds`.
[[nodiscard]] std::string to_kineto_json(const RecordedRank& rank);
// Compressed with gzip if the name ends in ".gz". Writes to a temporary file first, so that no partial file remains.
[[nodiscard]] Status write_kineto(const RecordedRank& rank, const std::filesystem::path& file);

}  // namespace stepcast

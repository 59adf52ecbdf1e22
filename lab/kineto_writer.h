// Writes a RecordedRank as a profiler trace (Chrome JSON as the PyTorch profiler exports it): the inverse of
// read_kineto.
#pragma once

#include <filesystem>
#include <string>

#include "stepcast/base/result.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

// The whole document as text. Times are written in microseconds with three decimals relative to
// `baseTimeNanoseconds`.
[[nodiscard]] std::string to_kineto_json(const RecordedRank& rank);
// Gzip-compressed when the name ends in ".gz". Writes to a temporary file first: nothing half-written is
// left.
[[nodiscard]] Status write_kineto(const RecordedRank& rank, const std::filesystem::path& file);

}  // namespace stepcast

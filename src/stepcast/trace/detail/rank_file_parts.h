// What a rank file holds, row by row, each by what came before it (adaptive_coder.h). Writing and reading are one walk.
#pragma once

#include <cstdint>
#include <optional>

#include "stepcast/trace/detail/adaptive_coder.h"
#include "stepcast/trace/rank_file.h"

namespace stepcast::detail {

// Writes the file, or reads it where the coder reads: then `file` is empty before. A reader fails where a value is out of the range
// of its field, or where more than `most_rows` rows are said.
void code_rank_file(AdaptiveCoder& coder, RankFile& file, std::uint64_t most_rows);

// Of all lists that grow with a recording.
[[nodiscard]] std::uint64_t rows_of(const RankFile& file);

}  // namespace stepcast::detail

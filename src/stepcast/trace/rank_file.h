// The recording of one rank as a small file (NAME.step) that replays exactly as its traces do.
//
//   STEPCAST_ASSIGN(const std::string bytes, rank_file_bytes({.step = 12, .rank = rank}));
//   STEPCAST_ASSIGN(const RankFile again, parse_rank_file(bytes, "rank3.step"));    // the same
//
// A gzip file, so a checksum covers its content: the line "stepcast-rank 4\n" and named columns of whole numbers
// (detail/columns.h). The first column is `texts`: the characters of each name and shape that occurs, once, each text ended by 0 (a
// 0 inside of it is 256). Then the tables in the order of rank_file.cpp (detail/table_columns.h). docs/recording.md says how the
// format may change.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

struct RankFile {
  std::optional<std::int64_t> step;  // the only one whose events are kept; nothing: all are
  RecordedRank rank;
  std::optional<ExecutionTrace> execution_trace;
};

// Whether a file whose decompressed content begins so is one, of whatever version.
[[nodiscard]] bool is_rank_file(std::string_view beginning);

// Equal recordings give equal bytes. Names that no event uses are left out.
[[nodiscard]] Result<std::string> rank_file_bytes(const RankFile& file);

// Content that is not compressed is read as well. Errors: no such file, another version, a file that ends early or was changed, content
// that is no recording, or that is 64 times as large as the file and larger than 16 MiB.
[[nodiscard]] Result<RankFile> read_rank_file(const std::filesystem::path& file);
[[nodiscard]] Result<RankFile> parse_rank_file(std::string_view bytes, const std::string& name);

}  // namespace stepcast

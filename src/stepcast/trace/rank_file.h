// The recording of one rank in a small file (NAME.step) that replays exactly like its traces.
//
//   STEPCAST_ASSIGN(const std::string bytes, rank_file_bytes({.step = 12, .rank = rank}));
//   STEPCAST_ASSIGN(const RankFile again, parse_rank_file(bytes, "rank3.step"));    // the same
//
// The file is compressed with gzip, so its content has a checksum. The content is the line "stepcast-rank
// 4\n" and named columns of integers (detail/columns.h). The first column is `texts`: the characters of each
// distinct name and shape, each text ended by 0 (a 0 inside a text is written as 256). Then the tables follow
// in the order of rank_file.cpp (detail/table_columns.h). docs/recording.md describes how the format may
// change.
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

// A recording: the events of one rank and its execution trace, if it has one.
struct RankFile {
  std::optional<std::int64_t> step;  // the step with events in the file; none: all steps
  RecordedRank rank;
  std::optional<ExecutionTrace> execution_trace;
};

// True if a file with this start of its decompressed content is a rank file of any version.
[[nodiscard]] bool is_rank_file(std::string_view beginning);

// The bytes of a file. Equal recordings give equal bytes. Names that no event uses are left out.
[[nodiscard]] Result<std::string> rank_file_bytes(const RankFile& file);

// Reads a file, also without compression. Errors: no such file, another version, an incomplete or changed
// file, content that is not a recording, content that is larger than 16 MiB and more than 64 times the size
// of the file.
[[nodiscard]] Result<RankFile> read_rank_file(const std::filesystem::path& file);
// The same from memory; `name` is used in errors and becomes the file of the rank.
[[nodiscard]] Result<RankFile> parse_rank_file(std::string_view bytes, const std::string& name);

}  // namespace stepcast

// One rank's recording as a compact file of its own (NAME.step): what a replay needs and nothing else.
//
//   STEPCAST_ASSIGN(const std::string bytes, rank_file_bytes({rank, execution_trace}));
//   STEPCAST_ASSIGN(const RankFile again, parse_rank_file(bytes, "rank3.step"));    // the same
//
// Layout, version 2: the line "stepcast-rank 2\n"; the length of the content and its content_hash(), and that of the base, eight
// bytes each, the low one first; the length of the base's name, one byte, and the name; the content, compressed as gzip. With a
// base (`--like`), another rank file of the folder, what is compressed is what the content has beside that one's
// (detail/shared_bytes.h); without one its hash is 0 and its name empty.
// The content is a row of numbers: seven bits a byte, the low ones first, the top bit of a byte says that another follows, and the
// sign stands in the lowest bit of the number. Lists begin with their length and are written column by column, in the order of
// fields in detail/rank_file_parts.h: ascending columns hold differences to the row before, some, behind a 1, the difference to
// another field of the row, some 0 where the row before of that name had the same (what is not below 0 is then one more), and some the
// places in a list of the values that there are, which stands before. Times count in the unit that the content begins with. Texts are
// their length and their bytes. Names stand once, and are meant by their place in the list, from 1; 0 is none.
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

// Whether a file that begins so is one, of whatever version.
[[nodiscard]] bool is_rank_file(std::string_view beginning);

// What other rank files were written against: those of one job say most things alike.
struct RankBase {
  std::string file;     // its path
  std::string content;  // not compressed
};

// Errors: zlib fails.
[[nodiscard]] Result<std::string> rank_file_bytes(const RankFile& file, const RankBase* like = nullptr);

// Errors: no such file, another version, a file that ends early or was changed, one whose base is not in its folder.
[[nodiscard]] Result<RankFile> read_rank_file(const std::filesystem::path& file);
[[nodiscard]] Result<RankFile> parse_rank_file(std::string_view bytes, const std::string& name,
                                               const RankBase* base = nullptr);
// Errors: as above, and a file that has a base itself.
[[nodiscard]] Result<RankBase> read_rank_base(const std::filesystem::path& file);

// Without the frame that tells accidents: for tests and fuzzing.
[[nodiscard]] std::string rank_file_content(const RankFile& file);
[[nodiscard]] Result<RankFile> parse_rank_file_content(std::string_view content, const std::string& name);

}  // namespace stepcast

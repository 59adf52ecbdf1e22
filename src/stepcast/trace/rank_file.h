// One rank's recording as a compact file of its own (NAME.step): what a replay needs and nothing else.
//
//   STEPCAST_ASSIGN(const std::string bytes, rank_file_bytes({rank, execution_trace}));
//   STEPCAST_ASSIGN(const RankFile again, parse_rank_file(bytes, "rank3.step"));    // the same
//
// Layout, version 3: the line "stepcast-rank 3\n"; the content_hash() of the content and that of the base's, eight bytes each, the
// low one first; the length of the base's name, one byte, and the name; the content. With a base (`--like`), another rank file of
// the folder, the content goes on from what a coder has learned that has just written that one; without one its hash is 0 and its
// name empty. The content is a row of decisions, each as many bits as it surprises (detail/adaptive_coder.h): the fields of
// detail/rank_file_parts.cpp in their order, row by row, the operators and calls of the host by their starts. A begin or an end on
// a thread is the time since the one before, work of the GPU the time since the work before it on its stream or since its launch.
// Times count in the unit that stands before them. Names are spelled out where they come first; those of
// tables/known_names.txt count as seen.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

namespace detail {
class AdaptiveCoder;
}

struct RankFile {
  std::optional<std::int64_t> step;  // the only one whose events are kept; nothing: all are
  RecordedRank rank;
  std::optional<ExecutionTrace> execution_trace;
};

// Whether a file that begins so is one, of whatever version.
[[nodiscard]] bool is_rank_file(std::string_view beginning);

// What other rank files were written against: those of one job say most things alike.
struct RankBase {
  std::string name;                                      // its path
  std::uint64_t hash = 0;                                // of its content
  std::shared_ptr<const detail::AdaptiveCoder> learned;  // a coder that has just written it
};

// Those of a folder, each read once: threads share them.
struct RankBases {
  std::mutex mutex;
  std::map<std::filesystem::path, RankBase> read;
};

// Errors: a base with a name of more than 255 bytes.
[[nodiscard]] Result<std::string> rank_file_bytes(const RankFile& file, const RankBase* like = nullptr);

// Errors: no such file, another version, a file that ends early or was changed, one whose base is not in its folder.
[[nodiscard]] Result<RankFile> read_rank_file(const std::filesystem::path& file, RankBases* bases = nullptr);
[[nodiscard]] Result<RankFile> parse_rank_file(std::string_view bytes, const std::string& name,
                                               const RankBase* base = nullptr);
// Errors: as above, and a file that has a base itself.
[[nodiscard]] Result<RankBase> read_rank_base(const std::filesystem::path& file);
// What the file's name and content are a base for.
[[nodiscard]] RankBase rank_base_of(const RankFile& file, std::string name);
// Without the frame that tells accidents: for tests and fuzzing.
[[nodiscard]] std::string rank_file_content(const RankFile& file, const RankBase* base = nullptr);
[[nodiscard]] Result<RankFile> parse_rank_file_content(std::string_view content, const std::string& name,
                                                       const RankBase* base = nullptr);

}  // namespace stepcast

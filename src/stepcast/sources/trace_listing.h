// Which files of a folder are traces of one job, and which rank each file belongs to as far as its name
// shows.
//
//   STEPCAST_ASSIGN(const TraceListing listing, list_traces(places, {.ranks = {0, 1}}));
//
// Formats are recognised from content. The rank of a file comes from its content (distributedInfo of a
// profiler trace), else from its name (file_ranks.h). A pattern given by the user overrides both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/error_text.h"
#include "stepcast/base/result.h"
#include "stepcast/sources/source_kind.h"

namespace stepcast {

// What the user said about the files.
struct ListOptions {
  // Files with names that show a rank outside of this list are not opened. Empty: all files are opened.
  std::vector<std::int32_t> ranks{};
  // Where file names show the rank, such as "host{}_gpu" (rank_by_pattern()). A pattern overrides the rank in
  // the files. Empty: no pattern.
  std::string ranks_from{};
};

// The files that were found, sorted by kind.
struct TraceListing {
  std::string name;          // the folder or first file that the user gave
  std::string ranks_from{};  // ListOptions::ranks_from
  // [SourceKindId] files of that kind, sorted by name
  std::array<std::vector<std::filesystem::path>, kSourceKindCount> of_kind{};
  // A file that was not read, and the reason for the user.
  struct Other {
    std::filesystem::path file;
    std::string why;
  };
  std::vector<Other> others;                    // files that are not traces of a known format
  std::vector<std::filesystem::path> unopened;  // files with names that show ranks that were not requested

  // The files of one kind.
  [[nodiscard]] const std::vector<std::filesystem::path>& of(SourceKindId kind) const {
    return of_kind[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] std::vector<std::filesystem::path>& of(SourceKindId kind) {
    return of_kind[static_cast<std::size_t>(kind)];
  }
  // The files of all kinds, in the order of the kinds.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;
  // The kind to read: the first kind that has files. Profiler traces if there are no files.
  [[nodiscard]] SourceKindId kind() const;

  // The rank of a file. `said` is the rank in its content, if there is one. Empty if neither content nor name
  // shows a rank. With a pattern (`ranks_from`), only the pattern counts.
  [[nodiscard]] std::optional<std::int32_t> rank_of(const std::filesystem::path& file,
                                                    std::optional<std::int32_t> said) const;
};

// Lists the traces below `places`: files, folders or archives (base/archive.h). An archive is treated like
// the folder that was packed. In a folder only *.json, *.gz, *.et, *.step and *.xplane.pb files are considered;
// the last ones alone if there are any. If a folder has no such files, its folders torch_profile and chakra (Megatron-LM) are read, or its only folder
// iteration_N (TorchTitan), step-N (`stepcast capture`) or below plugins/profile (XLA). Other sub-folders are not searched. If no name
// shows a requested rank, every file is opened, because names may mislead.
//
// Errors: a place that does not exist, a named file that is not a trace, several folders iteration_N, an
// invalid pattern.
[[nodiscard]] Result<TraceListing> list_traces(std::span<const std::filesystem::path> places,
                                               const ListOptions& options = {});

// The same listing after opening the files in `unopened`. They are sorted into the kinds and into `others`.
[[nodiscard]] TraceListing with_unopened(const TraceListing& listing);

}  // namespace stepcast

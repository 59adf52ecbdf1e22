// Which files of a folder are traces of one job, and of which ranks as far as their names tell.
//
//   STEPCAST_ASSIGN(const TraceListing listing, list_traces(places, {.ranks = {0, 1}}));
//
// Formats are told from content. The rank of a file is what it says itself (distributedInfo of a profiler trace),
// else what its name shows (file_ranks.h). Where a pattern says how names show it, the pattern holds.
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

struct ListOptions {
  // Files whose names show another rank than these are not opened; empty: all are.
  std::vector<std::int32_t> ranks{};
  // How names show the rank, "host{}_gpu" (rank_by_pattern()); it holds against what files say. Empty: as above.
  std::string ranks_from{};
};

struct TraceListing {
  std::string name;          // what was asked for: a folder, or the first file
  std::string ranks_from{};  // ListOptions::ranks_from
  // [SourceKindId] sorted by name
  std::array<std::vector<std::filesystem::path>, kSourceKindCount> of_kind{};
  struct Other {
    std::filesystem::path file;
    std::string why;
  };
  std::vector<Other> others;                    // files that are no traces of these formats
  std::vector<std::filesystem::path> unopened;  // whose names show ranks that nobody asked for

  [[nodiscard]] const std::vector<std::filesystem::path>& of(SourceKindId kind) const {
    return of_kind[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] std::vector<std::filesystem::path>& of(SourceKindId kind) {
    return of_kind[static_cast<std::size_t>(kind)];
  }
  // All that are traces.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;
  // What to read: the first kind that there are files of; without any, profiler traces.
  [[nodiscard]] SourceKindId kind() const;

  // The rank of a file that says `said` of itself; nothing where neither that nor its name tells.
  [[nodiscard]] std::optional<std::int32_t> rank_of(const std::filesystem::path& file,
                                                    std::optional<std::int32_t> said) const;
};

// `places` are files, folders or archives (archive.h), which stand for the folder that was packed. In a folder only *.json,
// *.gz, *.et and *.step files are looked at. A folder without such files stands for the folders torch_profile and chakra in it
// (Megatron-LM), or for its one folder iteration_N (TorchTitan) or step-N (`stepcast capture`); other sub-folders are not
// searched. Where no name shows a rank that was asked for, every file is opened: names may mislead.
// Errors: a place that does not exist, a named file that is no such trace, several folders iteration_N, a pattern that is
// none.
[[nodiscard]] Result<TraceListing> list_traces(std::span<const std::filesystem::path> places,
                                               const ListOptions& options = {});

// The same listing with every file opened.
[[nodiscard]] TraceListing with_unopened(const TraceListing& listing);

}  // namespace stepcast

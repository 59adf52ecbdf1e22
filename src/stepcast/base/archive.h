// Archives of files, .tar, .tar.gz and .zip, read as folders without unpacking them: a member is named like a file in a folder
// that is called like the archive, and ByteSource::open() reads it in place.
//
//   is_archive("traces.tgz")                      true, told from content
//   archive_members("traces.tgz")                 "traces.tgz/job/rank0.json.gz", "traces.tgz/job/rank1.json.gz"
//   ByteSource::open("traces.tgz/job/rank1.json.gz")
//
// What stands behind others in a .tar.gz is decompressed from its start; of a .tar and a .zip nothing else is read.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/byte_source.h"
#include "stepcast/base/result.h"

namespace stepcast {

[[nodiscard]] bool is_archive(const std::filesystem::path& file);

// The archive that holds `file`; nothing for what is on the disk itself, or nowhere.
[[nodiscard]] std::optional<std::filesystem::path> archive_of(const std::filesystem::path& file);

// The files on the disk that these stand in, each once: the archives for what is in some.
[[nodiscard]] std::vector<std::filesystem::path> files_on_disk(
    const std::vector<std::filesystem::path>& files);

// The members that are files, sorted. Errors: no archive, one that was cut off or damaged, a member whose name leads out of it
// or stands there twice, more than 10,000 members.
[[nodiscard]] Result<std::vector<std::filesystem::path>> archive_members(
    const std::filesystem::path& archive);

// Opens these members, in the order of the archive, which is read once.
using MemberVisit = std::function<Status(const std::filesystem::path& member, ByteSource& source)>;
[[nodiscard]] Status visit_members(const std::filesystem::path& archive,
                                   const std::vector<std::filesystem::path>& members,
                                   const MemberVisit& visit);

// Reads all of a tar archive in memory, plain or gzip, for tests and fuzzing.
[[nodiscard]] Result<std::vector<std::string>> tar_members(std::string_view content, std::string name);

}  // namespace stepcast

// Reads archives (.tar, .tar.gz, .zip) like folders, without unpacking them. A member has the path of the
// archive followed by its name in the archive, and ByteSource::open() reads it in place.
//
//   is_archive("traces.tgz")                      true, decided from the content
//   archive_members("traces.tgz")                 "traces.tgz/job/rank0.json.gz", "traces.tgz/job/rank1.json.gz"
//   ByteSource::open("traces.tgz/job/rank1.json.gz")
//
// Cost: in a .tar.gz, everything before a member has to be decompressed. In a .tar or .zip only the member is read.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/byte_source.h"
#include "stepcast/base/result.h"

namespace stepcast {

// True for tar (plain or gzip) and zip, decided from the content. False for pipes and other special files.
[[nodiscard]] bool is_archive(const std::filesystem::path& file);

// The archive that contains `file`; nothing if `file` exists on disk or has no archive among its parents.
[[nodiscard]] std::optional<std::filesystem::path> archive_of(const std::filesystem::path& file);

// The files on disk that contain these files, without duplicates: the archive for members of archives, else
// the file itself.
[[nodiscard]] std::vector<std::filesystem::path> files_on_disk(
    const std::vector<std::filesystem::path>& files);

// Paths of all member files, sorted. Errors: not an archive, a truncated or damaged one, a member name that
// leads out of the archive or occurs twice, more than 10,000 members.
[[nodiscard]] Result<std::vector<std::filesystem::path>> archive_members(
    const std::filesystem::path& archive);

// Calls `visit` with a source for each of these members, in archive order. The archive is read once.
using MemberVisit = std::function<Status(const std::filesystem::path& member, ByteSource& source)>;
[[nodiscard]] Status visit_members(const std::filesystem::path& archive,
                                   const std::vector<std::filesystem::path>& members,
                                   const MemberVisit& visit);

// Names of all members of a tar archive in memory (plain or gzip), sorted. For tests and fuzzing.
[[nodiscard]] Result<std::vector<std::string>> tar_members(std::string_view content, std::string name);

}  // namespace stepcast

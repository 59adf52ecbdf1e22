#include "stepcast/base/archive.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/detail/member_input.h"
#include "stepcast/base/detail/tar_reader.h"
#include "stepcast/base/zip_file.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// Limit against archives made to exhaust memory.
constexpr std::size_t kMostMembers = 10'000;

// The normalised name of a member. Members are never written to disk, but the name is used to open them, so
// names that lead out of the archive (absolute paths, "..") and names with control characters are errors.
Result<std::string> safe_name(const std::string& archive, const std::string& said) {
  const fs::path name = fs::path{said}.lexically_normal();
  const bool leads_out = name.is_absolute() || name.empty() || *name.begin() == "..";
  const bool is_text = std::ranges::all_of(said, [](char c) { return static_cast<unsigned char>(c) >= ' '; });
  if (leads_out || !is_text) {
    return Error::at(archive, "a member")
        .found(is_text ? fmt::format("the name `{}`", said.substr(0, 200)) : "control characters in its name")
        .expected("names below the folder that was packed")
        .advice("pack it again, or give the unpacked folder");
  }
  return name.string();
}

using OnMember = std::function<Status(const std::string& name, const ByteInput& input)>;

// Calls `visit` for each file of a tar archive, in archive order. `visit` may leave the input unread.
Status walk_tar(ByteSource source, const OnMember& visit) {
  const std::string archive = source.name();
  const auto reader = std::make_shared<detail::TarReader>(std::move(source));
  const ByteInput input = [reader](char* to, std::size_t n) { return reader->read(to, n); };
  for (;;) {
    STEPCAST_ASSIGN(const bool is_there, reader->next());
    if (!is_there) return Ok{};
    STEPCAST_ASSIGN(const std::string name, safe_name(archive, reader->member()));
    STEPCAST_TRY(visit(name, input));
  }
}

// The bytes of a zip member. `said` is the name in the archive, which may differ from the normalised one.
Result<ByteInput> input_of(const ZipFile& file, const std::string& said) {
  STEPCAST_ASSIGN(ZipMember member, file.member(said, fmt::format("member {}", said.substr(0, 200))));
  const auto shared = std::make_shared<ZipMember>(std::move(member));
  return ByteInput{[shared](char* to, std::size_t n) { return shared->read(to, n); }};
}

// Calls `visit` for each file of the archive for which `wants` is true. Unwanted members of a zip archive are
// not read; those of a tar archive are skipped.
Status walk(const fs::path& archive, const std::function<bool(const std::string& name)>& wants,
            const OnMember& visit) {
  if (ZipFile::is_zip(archive)) {
    STEPCAST_ASSIGN(const ZipFile file, ZipFile::open(archive));
    // Names of folders end with a slash; they have no content.
    for (const std::string& said : file.members()) {
      if (said.ends_with('/')) continue;
      STEPCAST_ASSIGN(const std::string name, safe_name(archive.string(), said));
      if (!wants(name)) continue;
      STEPCAST_ASSIGN(const ByteInput input, input_of(file, said));
      STEPCAST_TRY(visit(name, input));
    }
    return Ok{};
  }
  STEPCAST_ASSIGN(ByteSource source, ByteSource::open(archive));
  return walk_tar(std::move(source), [&](const std::string& name, const ByteInput& input) -> Status {
    return wants(name) ? visit(name, input) : Ok{};
  });
}

// Adds a name to the set. Errors: the name is already in it, or there are more than kMostMembers names.
Status add_name(const std::string& archive, const std::string& name, std::set<std::string>& names) {
  if (!names.insert(name).second) {
    return Error::at(archive, fmt::format("member {}", name))
        .found("two files of this name")
        .expected("one")
        .advice("pack it again, or give the unpacked folder");
  }
  if (names.size() > kMostMembers) {
    return Error::at(archive, "the archive")
        .found(fmt::format("more than {} files", kMostMembers))
        .expected("at most that many");
  }
  return Ok{};
}

}  // namespace

bool is_archive(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return false;  // a pipe can be read only once, so it is not probed
  if (ZipFile::is_zip(file)) return true;
  Result<ByteSource> source = ByteSource::open(file);
  if (!source) return false;
  const Result<std::string_view> beginning = source->peek(detail::kTarBlock);
  return beginning && detail::is_tar(*beginning);
}

std::optional<fs::path> archive_of(const fs::path& file) {
  std::error_code ignored;
  // The nearest existing parent decides: an archive, or a folder or file that is none.
  for (fs::path at = file; at.has_relative_path(); at = at.parent_path()) {
    if (!fs::exists(at, ignored)) continue;
    return at != file && is_archive(at) ? std::optional{at} : std::nullopt;
  }
  return std::nullopt;
}

std::vector<fs::path> files_on_disk(const std::vector<fs::path>& files) {
  std::vector<fs::path> found;
  for (const fs::path& file : files) {
    const fs::path at = archive_of(file).value_or(file);
    if (std::ranges::find(found, at) == found.end()) found.push_back(at);
  }
  return found;
}

Result<std::vector<fs::path>> archive_members(const fs::path& archive) {
  std::set<std::string> names;
  STEPCAST_TRY(walk(
      archive, [](const std::string&) { return true; },
      [&](const std::string& name, const ByteInput&) { return add_name(archive.string(), name, names); }));
  std::vector<fs::path> members;
  for (const std::string& name : names) members.push_back(archive / name);
  std::ranges::sort(members);
  return members;
}

Status visit_members(const fs::path& archive, const std::vector<fs::path>& members,
                     const MemberVisit& visit) {
  std::set<std::string> names;
  for (const fs::path& member : members) names.insert(member.lexically_relative(archive).string());
  return walk(
      archive, [&](const std::string& name) { return names.contains(name); },
      [&](const std::string& name, const ByteInput& input) {
        const fs::path member = archive / name;
        ByteSource source = ByteSource::from_input(input, member.string(), {});
        return visit(member, source);
      });
}

Result<std::vector<std::string>> tar_members(std::string_view content, std::string name) {
  std::set<std::string> names;
  const std::string archive = name;
  STEPCAST_TRY(walk_tar(
      ByteSource::from_memory(content, std::move(name)),
      [&](const std::string& member, const ByteInput&) { return add_name(archive, member, names); }));
  return std::vector<std::string>{names.begin(), names.end()};
}

Result<ByteInput> detail::open_member(const fs::path& archive, const fs::path& member) {
  const std::string wanted = member.lexically_relative(archive).string();
  if (ZipFile::is_zip(archive)) {
    std::optional<ByteInput> found;
    STEPCAST_TRY(walk(
        archive, [&](const std::string& name) { return !found && name == wanted; },
        [&](const std::string&, const ByteInput& input) -> Status {
          found = input;
          return Ok{};
        }));
    if (found) return *found;
  } else {
    STEPCAST_ASSIGN(ByteSource source, ByteSource::open(archive));
    // A tar archive has no directory: all headers before the member are read.
    const auto reader = std::make_shared<TarReader>(std::move(source));
    for (;;) {
      STEPCAST_ASSIGN(const bool is_there, reader->next());
      if (!is_there) break;
      STEPCAST_ASSIGN(const std::string name, safe_name(archive.string(), reader->member()));
      if (name == wanted) return ByteInput{[reader](char* to, std::size_t n) { return reader->read(to, n); }};
    }
  }
  return Error::at(archive.string(), "the archive")
      .found(fmt::format("no member `{}`", wanted))
      .expected("one");
}

}  // namespace stepcast

// Finds the trace files below the given places and sorts them by kind. A place is a file, a folder or an
// archive. Formats are recognised from the start of each file. Files with names that show another rank than
// the requested ones are set aside without opening them, because a folder may contain thousands of ranks.
#include "stepcast/sources/trace_listing.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/archive.h"
#include "stepcast/base/byte_source.h"
#include "stepcast/base/text.h"
#include "stepcast/trace/file_ranks.h"
#include "stepcast/trace/readers.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// Bytes at the start of a file's content that are enough to recognise its format.
constexpr std::size_t kBeginning = 4096;

bool is_named_xplane(const fs::path& file) {
  const std::string name = lower(file.filename().string());
  return name.ends_with(".xplane.pb") || name.ends_with(".xplane.pb.gz");
}

// A cheap test by name, so that other files of a folder are never opened.
bool looks_like_trace_file(const fs::path& file) {
  const std::string name = lower(file.filename().string());
  return name.ends_with(".json") || name.ends_with(".gz") || name.ends_with(".et") ||
         name.ends_with(".step") || is_named_xplane(file);
}

// Adds `file` to the list of its kind. `source` is positioned at the first byte of the file, or is the error
// of opening it. A file that was found in a folder and is not a trace goes to `listing.others`; if the user
// named the file (`asked_for`), this is an error.
Status sort_in(const fs::path& file, Result<ByteSource> source, bool asked_for, TraceListing& listing) {
  std::string beginning;
  if (source) {
    if (const Result<std::string_view> start = source->peek(kBeginning)) beginning = *start;
  }
  const Result<TraceFormat> format =
      source ? detect_trace_format(*source) : Result<TraceFormat>{std::move(source).error()};
  const TraceFormat known = format.ok() ? *format : TraceFormat::unknown;
  for (std::size_t k = 0; k < kSourceKindCount; ++k) {
    if (!source_kinds()[k].holds(known, beginning)) continue;
    listing.of_kind[k].push_back(file);
    return Ok{};
  }
  if (!asked_for) {
    listing.others.push_back(
        {file, format.ok() ? fmt::format("is not a profiler or execution trace: {}", to_string(known))
                           : message_without_file(format.error())});
    return Ok{};
  }
  if (!format.ok()) return format.error();
  return Error::at(file.string(), "content")
      .found(std::string{to_string(known)})
      .expected(
          "a PyTorch profiler trace (traceEvents), execution trace (nodes), a Chakra trace, an XLA profile "
          "(*.xplane.pb) or a rank file of `stepcast import`");
}

Status sort_in(const fs::path& file, bool asked_for, TraceListing& listing) {
  return sort_in(file, ByteSource::open(file), asked_for, listing);
}

// The file system, or the contents of one archive, with one interface. For an archive, `members` are the
// sorted full paths of its files; folders exist only as prefixes of these paths.
class Tree {
 public:
  Tree() = default;
  explicit Tree(std::vector<fs::path> members) : members_(std::move(members)) {}

  [[nodiscard]] bool is_file(const fs::path& path) const {
    std::error_code ignored;
    return members_ ? std::ranges::binary_search(*members_, path) : fs::is_regular_file(path, ignored);
  }
  [[nodiscard]] bool is_folder(const fs::path& path) const {
    std::error_code ignored;
    return members_ ? !entries_in_archive(path).empty() : fs::is_directory(path, ignored);
  }
  // Files and folders directly in `folder`, sorted by name.
  [[nodiscard]] Result<std::vector<fs::path>> entries_of(const fs::path& folder) const {
    if (members_) return entries_in_archive(folder);
    std::vector<fs::path> entries;
    std::error_code problem;
    for (auto entry = fs::directory_iterator{folder, problem}; !problem && entry != fs::directory_iterator{};
         entry.increment(problem)) {
      entries.push_back(entry->path());
    }
    if (problem)
      return Error::at(folder.string(), fmt::format("cannot list the folder: {}", problem.message()));
    std::ranges::sort(entries);
    return entries;
  }

 private:
  // All members below a folder are consecutive in the sorted list, so equal entries are neighbours. O(number
  // of members).
  [[nodiscard]] std::vector<fs::path> entries_in_archive(const fs::path& folder) const {
    std::vector<fs::path> entries;
    for (const fs::path& member : *members_) {
      const auto [in_folder, in_member] = std::ranges::mismatch(folder, member);
      if (in_folder != folder.end() || in_member == member.end()) continue;
      fs::path entry = folder / *in_member;
      if (entries.empty() || entries.back() != entry) entries.push_back(std::move(entry));
    }
    return entries;
  }

  std::optional<std::vector<fs::path>> members_;  // sorted; none: the file system
};

// True for folders that contain the traces of one moment of a training: "step-000020" of `stepcast capture`,
// "iteration_10" of TorchTitan.
bool is_of_one_moment(const fs::path& folder) {
  const std::string name = folder.filename().string();
  for (const std::string_view before : {"step-", "step_", "iteration_"}) {
    if (!name.starts_with(before) || name.size() == before.size()) continue;
    return std::all_of(name.begin() + static_cast<std::ptrdiff_t>(before.size()), name.end(),
                       [](char c) { return c >= '0' && c <= '9'; });
  }
  return false;
}

// The files directly in a folder that may be traces. If there are none: the files in its folders
// torch_profile and chakra, which Megatron-LM writes next to each other, else the files of its only folder of
// one moment. Below plugins/profile, XLA writes a folder for each moment. Error: several moments, since their
// traces must not be mixed.
Result<std::vector<fs::path>> files_in(const Tree& tree, const fs::path& folder) {
  STEPCAST_ASSIGN(const std::vector<fs::path> entries, tree.entries_of(folder));
  std::vector<fs::path> files, moments;
  for (const fs::path& entry : entries) {
    if (looks_like_trace_file(entry) && tree.is_file(entry)) files.push_back(entry);
    if (is_of_one_moment(entry) && tree.is_folder(entry)) moments.push_back(entry);
  }
  // XLA writes each profile a second time, as *.trace.json.gz for a viewer.
  if (std::ranges::any_of(files, is_named_xplane)) {
    std::erase_if(files, [](const fs::path& file) {
      const std::string name = lower(file.filename().string());
      return name.ends_with(".trace.json") || name.ends_with(".trace.json.gz");
    });
  }
  if (!files.empty()) return files;
  if (const fs::path profiles = folder / "plugins" / "profile"; moments.empty() && tree.is_folder(profiles)) {
    STEPCAST_ASSIGN(moments, tree.entries_of(profiles));
    std::erase_if(moments, [&](const fs::path& moment) { return !tree.is_folder(moment); });
  }
  for (const char* name : {"torch_profile", "chakra"}) {
    const fs::path part = folder / name;
    if (!tree.is_folder(part)) continue;
    STEPCAST_ASSIGN(const std::vector<fs::path> in_part, tree.entries_of(part));
    std::copy_if(in_part.begin(), in_part.end(), std::back_inserter(files),
                 [&](const fs::path& file) { return looks_like_trace_file(file) && tree.is_file(file); });
  }
  if (!files.empty() || moments.empty()) return files;
  if (moments.size() > 1) {
    return Error::at(folder.string(), fmt::format("{} recordings of the training", moments.size()))
        .found(
            fmt::format("{} to {}", moments.front().filename().string(), moments.back().filename().string()))
        .expected("the traces of one")
        .advice(fmt::format("name one of these folders: {}", moments.back().string()));
  }
  return files_in(tree, moments.front());
}

// The outermost folder with more than one entry. An archive of a folder usually contains the folder name as
// its only top entry, and these levels are skipped.
fs::path top_of(const Tree& tree, fs::path folder) {
  for (;;) {
    const Result<std::vector<fs::path>> entries = tree.entries_of(folder);
    const bool is_wrapped = entries && entries->size() == 1 && tree.is_folder(entries->front());
    if (!is_wrapped || is_of_one_moment(entries->front())) return folder;
    folder = entries->front();
  }
}

// Error if the folder contains an archive: archives inside archives are not read.
Status refuse_archives(const Tree& tree, const fs::path& folder) {
  STEPCAST_ASSIGN(const std::vector<fs::path> entries, tree.entries_of(folder));
  for (const fs::path& entry : entries) {
    const std::string name = lower(entry.filename().string());
    const auto ends_in = [&](const char* suffix) { return name.ends_with(suffix); };
    if (tree.is_file(entry) && std::ranges::any_of(std::array{".tar", ".tgz", ".tar.gz", ".zip"}, ends_in)) {
      return Error::at(entry.string(), "")
          .found("an archive inside an archive")
          .expected("traces")
          .advice("unpack the outer one");
    }
  }
  return Ok{};
}

// True if the name of the file shows a rank that was not requested.
using OfAnotherRank = std::function<bool(const fs::path&)>;

// Moves the files of ranks that were not requested from `files` to `listing.unopened`. The order of both
// parts is kept.
void leave_unopened(std::vector<fs::path>& files, const OfAnotherRank& other, TraceListing& listing) {
  const auto others = std::stable_partition(files.begin(), files.end(), std::not_fn(other));
  listing.unopened.insert(listing.unopened.end(), others, files.end());
  files.erase(others, files.end());
}

// Lists an archive. `place` is the archive, or a folder or file inside it ("traces.tgz/rank0"). Opens all
// files in one pass over the archive, as a compressed archive cannot be read at random positions.
Status list_archive(const fs::path& archive, fs::path place, const OfAnotherRank& other,
                    TraceListing& listing) {
  if (!place.has_filename()) place = place.parent_path();  // "traces.tgz/"
  STEPCAST_ASSIGN(std::vector<fs::path> members, archive_members(archive));
  const Tree tree{std::move(members)};
  if (tree.is_file(place)) return sort_in(place, true, listing);
  if (!tree.is_folder(place)) {
    return Error::at(place.string(), place == archive ? "the archive has no file"
                                                      : "there is no such file or folder in the archive");
  }
  const fs::path folder = top_of(tree, place);
  STEPCAST_TRY(refuse_archives(tree, folder));
  STEPCAST_ASSIGN(std::vector<fs::path> files, files_in(tree, folder));
  leave_unopened(files, other, listing);
  STEPCAST_TRY(visit_members(archive, files, [&](const fs::path& file, ByteSource& source) {
    return sort_in(file, std::move(source), false, listing);
  }));
  for (std::vector<fs::path>& of_kind : listing.of_kind) std::ranges::sort(of_kind);
  return Ok{};
}

}  // namespace

// Files that the user named are read whatever they are, or are errors; files of folders and archives are
// sorted.
Result<TraceListing> list_traces(std::span<const fs::path> places, const ListOptions& options) {
  TraceListing listing;
  if (!options.ranks_from.empty()) STEPCAST_TRY(check_rank_pattern(options.ranks_from));
  listing.ranks_from = options.ranks_from;
  if (places.empty())
    return Error{"no file or folder was given"}.expected("a folder with one trace per rank");
  listing.name = places.front().string();
  // Decides by the name alone. A file without a rank in its name is opened.
  const auto is_of_another_rank = [&](const fs::path& file) {
    if (options.ranks.empty()) return false;
    const auto rank = listing.rank_of(file, std::nullopt);
    return rank && std::find(options.ranks.begin(), options.ranks.end(), *rank) == options.ranks.end();
  };
  for (const fs::path& place : places) {
    std::error_code problem;
    const fs::file_status status = fs::status(place, problem);
    if (!fs::exists(status)) {
      const std::optional<fs::path> archive = archive_of(place);
      if (!archive) return Error::at(place.string(), "there is no such file or folder");
      STEPCAST_TRY(list_archive(*archive, place, is_of_another_rank, listing));
    } else if (is_archive(place)) {
      STEPCAST_TRY(list_archive(place, place, is_of_another_rank, listing));
    } else if (!fs::is_directory(status)) {
      if (is_of_another_rank(place))
        listing.unopened.push_back(place);
      else
        STEPCAST_TRY(sort_in(place, true, listing));
    } else {
      STEPCAST_ASSIGN(std::vector<fs::path> files, files_in(Tree{}, place));
      leave_unopened(files, is_of_another_rank, listing);
      for (const fs::path& file : files) STEPCAST_TRY(sort_in(file, false, listing));
    }
  }
  // No trace was found among the opened files: the names may have misled, so the others are opened too.
  return listing.files().empty() ? with_unopened(listing) : listing;
}

TraceListing with_unopened(const TraceListing& listing) {
  TraceListing all = listing;
  for (const fs::path& file : std::exchange(all.unopened, {}))
    static_cast<void>(sort_in(file, false, all));  // files that are not traces go to `others`
  for (std::vector<fs::path>& files : all.of_kind) std::sort(files.begin(), files.end());
  return all;
}

std::optional<std::int32_t> TraceListing::rank_of(const fs::path& file,
                                                  std::optional<std::int32_t> said) const {
  const std::string file_name = file.filename().string();
  if (!ranks_from.empty()) return rank_by_pattern(file_name, ranks_from);
  return said ? said : rank_in_name(file_name);
}

std::vector<fs::path> TraceListing::files() const {
  std::vector<fs::path> all;
  for (const std::vector<fs::path>& files : of_kind) all.insert(all.end(), files.begin(), files.end());
  return all;
}

SourceKindId TraceListing::kind() const {
  // Kinds are ordered by priority in source_kinds.def.
  const auto first =
      std::find_if(of_kind.begin(), of_kind.end(), [](const auto& files) { return !files.empty(); });
  return first == of_kind.end() ? SourceKindId{} : static_cast<SourceKindId>(first - of_kind.begin());
}

}  // namespace stepcast

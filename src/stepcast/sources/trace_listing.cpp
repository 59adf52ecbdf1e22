#include "stepcast/sources/trace_listing.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/byte_source.h"
#include "stepcast/base/text.h"
#include "stepcast/trace/file_ranks.h"
#include "stepcast/trace/readers.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// The first 4 KiB of a file, of gzip's content; nothing where it cannot be read.
std::string beginning_of(const fs::path& file) {
  std::string start(4096, '\0');
  std::size_t size = 0;
  Result<ByteSource> source = ByteSource::open(file);
  while (source && size < start.size()) {
    const Result<std::size_t> n = source->read(start.data() + size, start.size() - size);
    if (!n || *n == 0) break;
    size += *n;
  }
  start.resize(size);
  return start;
}

bool looks_like_trace_file(const fs::path& file) {
  const std::string name = lower(file.filename().string());
  return name.ends_with(".json") || name.ends_with(".gz") || name.ends_with(".et") || name.ends_with(".step");
}

Status sort_in(const fs::path& file, bool asked_for, TraceListing& listing) {
  const std::string beginning = beginning_of(file);
  const Result<TraceFormat> format = detect_trace_format(file);
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
          "a PyTorch profiler trace (traceEvents), execution trace (nodes), a Chakra trace or a rank file of "
          "`stepcast import`");
}

// Entries of a folder in the order of their names.
Result<std::vector<fs::path>> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code problem;
  for (auto entry = fs::directory_iterator{folder, problem}; !problem && entry != fs::directory_iterator{};
       entry.increment(problem)) {
    entries.push_back(entry->path());
  }
  if (problem)
    return Error::at(folder.string(), fmt::format("cannot list the folder: {}", problem.message()));
  std::sort(entries.begin(), entries.end());
  return entries;
}

// "step-000020" of our capture, "iteration_10" of TorchTitan: the traces of one moment of a training.
bool is_of_one_moment(const fs::path& folder) {
  const std::string name = folder.filename().string();
  for (const std::string_view before : {"step-", "step_", "iteration_"}) {
    if (!name.starts_with(before) || name.size() == before.size()) continue;
    return std::all_of(name.begin() + static_cast<std::ptrdiff_t>(before.size()), name.end(),
                       [](char c) { return c >= '0' && c <= '9'; });
  }
  return false;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// The files of a folder that may be traces. Where it has none: those of the folders that Megatron-LM writes side by side,
// or of the one moment that was recorded.
Result<std::vector<fs::path>> files_in(const fs::path& folder) {
  STEPCAST_ASSIGN(const std::vector<fs::path> entries, entries_of(folder));
  std::vector<fs::path> files, moments;
  for (const fs::path& entry : entries) {
    if (looks_like_trace_file(entry) && is_file(entry)) files.push_back(entry);
    if (is_of_one_moment(entry) && is_folder(entry)) moments.push_back(entry);
  }
  if (!files.empty()) return files;
  for (const char* name : {"torch_profile", "chakra"}) {
    const fs::path part = folder / name;
    if (!is_folder(part)) continue;
    STEPCAST_ASSIGN(const std::vector<fs::path> in_part, entries_of(part));
    std::copy_if(in_part.begin(), in_part.end(), std::back_inserter(files),
                 [](const fs::path& file) { return looks_like_trace_file(file) && is_file(file); });
  }
  if (!files.empty() || moments.empty()) return files;
  if (moments.size() > 1) {
    return Error::at(folder.string(), fmt::format("{} moments of the training were recorded", moments.size()))
        .found(
            fmt::format("{} to {}", moments.front().filename().string(), moments.back().filename().string()))
        .expected("the traces of one")
        .advice(fmt::format("name one of these folders: {}", moments.back().string()));
  }
  return files_in(moments.front());
}

}  // namespace

Result<TraceListing> list_traces(std::span<const fs::path> places, const ListOptions& options) {
  TraceListing listing;
  if (!options.ranks_from.empty()) STEPCAST_TRY(check_rank_pattern(options.ranks_from));
  listing.ranks_from = options.ranks_from;
  if (places.empty())
    return Error{"no file or folder was given"}.expected("a folder with one trace per rank");
  listing.name = places.front().string();
  const auto is_of_another_rank = [&](const fs::path& file) {
    if (options.ranks.empty()) return false;
    const auto rank = listing.rank_of(file, std::nullopt);
    return rank && std::find(options.ranks.begin(), options.ranks.end(), *rank) == options.ranks.end();
  };
  for (const fs::path& place : places) {
    std::error_code problem;
    const fs::file_status status = fs::status(place, problem);
    if (!fs::exists(status)) return Error::at(place.string(), "there is no such file or folder");
    if (!fs::is_directory(status)) {
      if (is_of_another_rank(place))
        listing.unopened.push_back(place);
      else
        STEPCAST_TRY(sort_in(place, true, listing));
      continue;
    }
    STEPCAST_ASSIGN(std::vector<fs::path> files, files_in(place));
    const auto others = std::stable_partition(files.begin(), files.end(), std::not_fn(is_of_another_rank));
    listing.unopened.insert(listing.unopened.end(), others, files.end());
    files.erase(others, files.end());
    for (const fs::path& file : files) STEPCAST_TRY(sort_in(file, false, listing));
  }
  return listing.files().empty() ? with_unopened(listing) : listing;
}

TraceListing with_unopened(const TraceListing& listing) {
  TraceListing all = listing;
  for (const fs::path& file : std::exchange(all.unopened, {}))
    static_cast<void>(sort_in(file, false, all));  // what is no trace goes to the others
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
  const auto first =
      std::find_if(of_kind.begin(), of_kind.end(), [](const auto& files) { return !files.empty(); });
  return first == of_kind.end() ? SourceKindId{} : static_cast<SourceKindId>(first - of_kind.begin());
}

}  // namespace stepcast

// Search of platform files: platform_search_dirs, load_platform, load_device, parse_platform, list_platforms.

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/nearest_word.h"
#include "stepcast/base/shipped_folders.h"
#include "stepcast/platform/detail/platform_reader.h"
#include "stepcast/platform/platform_file.h"

// Both macros are set where this file is compiled (src/CMakeLists.txt).
#ifndef STEPCAST_SOURCE_PLATFORMS
#define STEPCAST_SOURCE_PLATFORMS ""
#endif
#ifndef STEPCAST_INSTALLED_PLATFORMS
#define STEPCAST_INSTALLED_PLATFORMS ""
#endif

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// False for an empty path and for anything that cannot be examined.
bool is_folder(const fs::path& path) {
  std::error_code failure;
  return !path.empty() && fs::is_directory(path, failure);
}

// The names of a file that a user may ask for, from the file itself.
struct Names {
  fs::path file;
  std::string name, role;
  std::vector<std::string> aliases;
  // Only if this file names the device instead of taking it from another file.
  std::vector<std::string> devices;
};

// Appends a value if it is a text.
void add_text(std::vector<std::string>& out, const JsonValue* value) {
  if (value != nullptr && value->is_text()) out.push_back(value->text());
}

// Appends the texts of a list; ignores other values.
void add_texts(std::vector<std::string>& out, const JsonValue* list) {
  if (list == nullptr || !list->is_array()) return;
  for (const JsonValue& item : list->items()) add_text(out, &item);
}

// Reads only the names of a file.
Result<Names> read_names(const fs::path& file) {
  STEPCAST_ASSIGN(const detail::PlatformDocument document, detail::read_platform_document(file));
  const JsonValue& root = document.root;
  Names names;
  names.file = file;
  names.name = file.stem().string();
  if (const JsonValue* name = root.find("name"); name != nullptr && name->is_text())
    names.name = name->text();
  if (const JsonValue* role = root.find("role"); role != nullptr && role->is_text())
    names.role = role->text();
  add_texts(names.aliases, root.find("aliases"));
  const JsonValue* device = root.find("device");
  // A file may extend another one for its models and still name the device itself.
  if (device != nullptr && device->find("name") != nullptr && device->find("extends") == nullptr) {
    add_text(names.devices, device->find("name"));
    add_texts(names.devices, device->find("aliases"));
  }
  return names;
}

// Platform files of all folders, sorted by folder and name. The first file of a name hides later ones.
std::vector<fs::path> platform_files(std::span<const fs::path> dirs) {
  std::vector<fs::path> all;
  std::set<std::string> seen;
  for (const fs::path& dir : dirs) {
    std::vector<fs::path> here;
    std::error_code failure;
    for (fs::directory_iterator entry{dir, failure}, end; !failure && entry != end;
         entry.increment(failure)) {
      std::error_code unknown;
      if (entry->path().extension() == ".json" && entry->is_regular_file(unknown))
        here.push_back(entry->path());
    }
    std::ranges::sort(here);
    for (fs::path& file : here)
      if (seen.insert(file.stem().string()).second) all.push_back(std::move(file));
  }
  return all;
}

bool any_same(const std::vector<std::string>& names, std::string_view text) {
  return std::ranges::any_of(names, [&](const std::string& n) { return same_name(n, text); });
}

std::string joined(std::span<const fs::path> dirs) {
  std::string text;
  for (const fs::path& dir : dirs) text += fmt::format("{}{}", text.empty() ? "" : ", ", dir.string());
  return text;
}

// Files that match a name, by kind of match, best first.
struct Matches {
  std::vector<fs::path> by_name, by_alias, by_device;
  std::vector<std::string> known;  // for a suggestion
  std::string unreadable;          // error of the first unreadable file
};

// Reads the names of all files. Unreadable files are noted and skipped.
Result<Matches> find_matches(std::string_view name, std::span<const fs::path> dirs) {
  Matches matches;
  for (const fs::path& file : platform_files(dirs)) {
    Result<Names> read = read_names(file);
    if (!read) {  // not an error of this name, unless no other file has it
      if (matches.unreadable.empty()) matches.unreadable = read.error().message();
      continue;
    }
    Names& names = *read;
    if (same_name(names.name, name) || same_name(file.stem().string(), name))
      matches.by_name.push_back(file);
    else if (any_same(names.aliases, name))
      matches.by_alias.push_back(file);
    if (any_same(names.devices, name)) matches.by_device.push_back(file);
    matches.known.push_back(std::move(names.name));
    std::move(names.aliases.begin(), names.aliases.end(), std::back_inserter(matches.known));
    std::move(names.devices.begin(), names.devices.end(), std::back_inserter(matches.known));
  }
  return matches;
}

// Suggestion for an unknown name: a platform with the same GPU ("8xh100" and "hgx-h100" for H100), else the
// most similar spelling.
std::optional<std::string> same_gpu(std::string_view name, const std::vector<std::string>& known) {
  const auto gpu_of = [](std::string_view words) {
    std::string core = spelling_core(words);
    std::size_t at = 0;
    while (at < core.size() && core[at] >= '0' && core[at] <= '9') ++at;
    if (at > 0 && at < core.size() && core[at] == 'x') core.erase(0, at + 1);
    for (const std::string_view maker : {"dgx", "hgx"})
      if (core.starts_with(maker)) core.erase(0, maker.size());
    return core;
  };
  const std::string wanted = gpu_of(name);
  const auto found = std::ranges::find_if(
      known, [&](const std::string& one) { return !wanted.empty() && gpu_of(one) == wanted; });
  return found != known.end() ? std::optional{*found} : nearest_word(name, known);
}

// The error for an unknown name, with a suggestion.
Error not_found(std::string_view kind, std::string_view name, const Matches& matches,
                std::span<const fs::path> dirs) {
  if (matches.known.empty()) {
    return Error{fmt::format("no platforms were found{}{}", dirs.empty() ? "" : " in ", joined(dirs))}.advice(
        "set STEPCAST_PLATFORMS to the folder `platforms` of the checkout, or to share/stepcast/platforms of "
        "the "
        "installation");
  }
  const auto meant = same_gpu(name, matches.known);
  std::string problem = fmt::format("no {} named `{}` in {}", kind, name.substr(0, 80), joined(dirs));
  if (!matches.unreadable.empty())
    problem += fmt::format(" (one file there is broken: {})", matches.unreadable);
  return Error::at("", "", std::move(problem))
      .advice(meant ? fmt::format("did you mean `{}`? `stepcast platforms` lists all", *meant)
                    : "`stepcast platforms` lists the shipped ones; a file's path ends in .json");
}

}  // namespace

std::vector<fs::path> platform_search_dirs() {
  std::vector<fs::path> dirs;
  if (const char* variable = std::getenv("STEPCAST_PLATFORMS")) {
    std::string_view rest = variable;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) dirs.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  std::vector<fs::path> shipped = shipped_folders("platforms");
  shipped.insert(shipped.end(), {STEPCAST_SOURCE_PLATFORMS, STEPCAST_INSTALLED_PLATFORMS});
  const auto found = std::ranges::find_if(shipped, is_folder);
  std::error_code failure;
  const auto is_there = [&](const fs::path& dir) { return fs::equivalent(dir, *found, failure); };
  if (found != shipped.end() && std::ranges::none_of(dirs, is_there)) dirs.push_back(*found);
  return dirs;
}

Result<Platform> parse_platform(std::string_view text, const fs::path& file,
                                std::span<const fs::path> search_dirs) {
  return detail::PlatformReader{search_dirs}.read_text(text, file);
}

Result<Platform> load_platform(std::string_view name_or_path, std::span<const fs::path> search_dirs,
                               std::string_view device_hint) {
  if (name_or_path.empty()) return Error{"no platform named; `stepcast platforms` lists the shipped ones"};
  const auto read = [&](const fs::path& file) { return detail::PlatformReader{search_dirs}.read_file(file); };
  std::error_code failure;
  // Order: path, file name in a folder, name, alias, device name.
  if (name_or_path.ends_with(".json") ||
      (detail::is_path(name_or_path) && fs::is_regular_file(fs::path{name_or_path}, failure))) {
    return read(fs::path{name_or_path});
  }
  if (!detail::is_path(name_or_path)) {
    for (const fs::path& dir : search_dirs) {
      const fs::path file = dir / fmt::format("{}.json", name_or_path);
      if (fs::is_regular_file(file, failure)) return read(file);
    }
  }
  STEPCAST_ASSIGN(const Matches matches, find_matches(name_or_path, search_dirs));
  if (!matches.by_name.empty()) return read(matches.by_name.front());
  if (matches.by_alias.size() == 1) return read(matches.by_alias.front());
  if (matches.by_alias.empty()) {
    if (!matches.by_device.empty()) return read(matches.by_device.front());
    return not_found("platform", name_or_path, matches, search_dirs);
  }
  std::string candidates;
  for (const fs::path& file : matches.by_alias) {
    STEPCAST_ASSIGN(Platform platform, read(file));
    if (!device_hint.empty() && platform.device.matches_name(device_hint)) return platform;
    candidates +=
        fmt::format("{}{} ({})", candidates.empty() ? "" : ", ", platform.name, platform.device.name);
  }
  const std::string problem = fmt::format("several platforms are named `{}`", name_or_path);
  if (device_hint.empty()) return Error::at("", "", problem).found(candidates).advice("name one of them");
  return Error::at("", "", problem)
      .found(candidates)
      .expected(fmt::format("one with the GPU `{}`", device_hint));
}

Result<Platform> load_platform(std::string_view name_or_path, std::string_view device_hint) {
  return load_platform(name_or_path, platform_search_dirs(), device_hint);
}

Result<Platform> load_device(std::string_view device_name, std::span<const fs::path> search_dirs) {
  STEPCAST_ASSIGN(const Matches matches, find_matches(device_name, search_dirs));
  if (matches.by_device.empty()) return not_found("device", device_name, matches, search_dirs);
  return detail::PlatformReader{search_dirs}.read_file(matches.by_device.front());
}

Result<Platform> load_device(std::string_view device_name) {
  return load_device(device_name, platform_search_dirs());
}

PlatformListings list_platforms(std::span<const fs::path> search_dirs) {
  PlatformListings all;
  detail::PlatformReader reader{search_dirs, detail::PlatformReader::Models::names};
  for (const fs::path& file : platform_files(search_dirs)) {
    const Result<Platform> read = reader.read_file(file);
    if (!read) {
      all.unreadable.push_back(read.error().message());
      continue;
    }
    const Platform& p = *read;
    const bool is_node = p.node.gpus_per_node > 1 || p.node.network.has_value();
    PlatformListing::Role role = is_node ? PlatformListing::Role::node : PlatformListing::Role::device;
    if (const Result<Names> names = read_names(file); names && names->role == detail::kBenchmarkRole)
      role = PlatformListing::Role::benchmark;
    all.platforms.push_back({role, p.name, p.description, p.aliases, p.device.name, p.device.aliases,
                             p.node.gpus_per_node, p.curves.size(), p.models.size(), p.overheads->size(),
                             file});
  }
  std::ranges::sort(all.platforms, {}, &PlatformListing::name);
  return all;
}

}  // namespace stepcast

#include "lab/recorded_sets.h"

#include <algorithm>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace stepcast {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<std::vector<fs::path>> folders_of(const fs::path& data) {
  std::error_code problem;
  const fs::file_status status = fs::status(data, problem);
  if (!fs::exists(status)) return Error::at(data.string(), "there is no such file or folder");
  if (!fs::is_directory(status)) return std::vector<fs::path>{data};
  std::vector<fs::path> folders{data};
  for (auto entry = fs::recursive_directory_iterator{data, problem};
       !problem && entry != fs::recursive_directory_iterator{}; entry.increment(problem)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) folders.push_back(entry->path());
  }
  if (problem) return Error::at(data.string(), fmt::format("cannot list the folder: {}", problem.message()));
  std::ranges::sort(folders);
  return folders;
}

std::string relative_name(const fs::path& path, const fs::path& data) {
  std::string name = path.lexically_relative(data).generic_string();
  if (name.empty() || name == ".") name = path.filename().generic_string();
  if (name.empty())
    name = path.parent_path().filename().generic_string();  // a folder written with a slash at its end
  for (const std::string_view ending : {".gz", ".json", ".trace", ".pt"})
    if (name.ends_with(ending)) name.erase(name.size() - ending.size());
  return name;
}

}  // namespace stepcast

#include "stepcast/base/read_scope.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// Folders of the innermost ReadScope of this thread; null: all files may be read.
thread_local const std::vector<fs::path>* read_folders = nullptr;

// The path without links and "..", also if its last parts do not exist; empty on errors.
fs::path real_place(const fs::path& path) {
  std::error_code problem;
  fs::path found = fs::weakly_canonical(path, problem);
  return problem ? fs::path{} : found;
}

}  // namespace

ReadScope::ReadScope(const std::vector<fs::path>* folders) : before_(std::exchange(read_folders, folders)) {}
ReadScope::~ReadScope() { read_folders = before_; }

std::vector<fs::path> canonical_folders(std::vector<fs::path> folders) {
  for (fs::path& folder : folders) folder = real_place(folder);
  std::erase(folders, fs::path{});
  return folders;
}

const std::vector<fs::path>* current_read_folders() { return read_folders; }

Status may_read(const fs::path& file) {
  if (read_folders == nullptr) return Ok{};
  const fs::path place = real_place(file);
  // Whether the place begins with all components of the folder.
  const auto holds = [&](const fs::path& folder) {
    return std::ranges::mismatch(folder, place).in1 == folder.end();
  };
  if (std::ranges::any_of(*read_folders, holds)) return Ok{};
  return Error::at(file.string(), "", "not in a folder that was given at the start");
}

Status may_write(const fs::path& file) {
  if (read_folders == nullptr) return Ok{};
  return Error::at(file.string(), "", "files are not written here");
}

}  // namespace stepcast

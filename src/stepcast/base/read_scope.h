// Files that the work of a thread may read and write, where it answers a question of someone else: the questions to a server
// name files, and those name others.
//
//   const std::vector<std::filesystem::path> folders = canonical_folders({"/data/traces"});
//   const ReadScope scope{&folders};
//   STEPCAST_TRY(may_read(file));    // asked by whatever opens a file
//   STEPCAST_TRY(may_write(file));   // asked by whatever makes a file or a folder: an error in any such scope
#pragma once

#include <filesystem>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// From here to the end of the block this thread, and those that parallel_for starts, read files in these folders alone; null:
// all files. The folders have to outlive it.
class ReadScope {
 public:
  explicit ReadScope(const std::vector<std::filesystem::path>* folders);
  ReadScope(const ReadScope&) = delete;
  ReadScope& operator=(const ReadScope&) = delete;
  ~ReadScope();

 private:
  const std::vector<std::filesystem::path>* before_;
};

// Without links and "..", as a ReadScope compares them.
[[nodiscard]] std::vector<std::filesystem::path> canonical_folders(
    std::vector<std::filesystem::path> folders);

// Of the innermost ReadScope; null where there is none.
[[nodiscard]] const std::vector<std::filesystem::path>* current_read_folders();

// An error where the file lies in none of the folders, through links either.
[[nodiscard]] Status may_read(const std::filesystem::path& file);
// An error inside a ReadScope with folders: nothing is written there.
[[nodiscard]] Status may_write(const std::filesystem::path& file);

}  // namespace stepcast

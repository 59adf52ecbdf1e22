// Restricts the files that a thread may read. A server uses it for requests of clients, which name files that
// may name other files.
//
//   const std::vector<std::filesystem::path> folders = canonical_folders({"/data/traces"});
//   const ReadScope scope{&folders};
//   STEPCAST_TRY(may_read(file));    // called by every function that opens a file
#pragma once

#include <filesystem>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// Until the end of the block, this thread and the threads of its parallel_for() calls may read files only in
// these folders. Null allows all files. The folders must outlive the scope and be canonical. Scopes nest.
class ReadScope {
 public:
  explicit ReadScope(const std::vector<std::filesystem::path>* folders);
  ReadScope(const ReadScope&) = delete;
  ReadScope& operator=(const ReadScope&) = delete;
  ~ReadScope();

 private:
  const std::vector<std::filesystem::path>* before_;
};

// The folders without links and "..", as ReadScope needs them. Folders that cannot be resolved are dropped.
[[nodiscard]] std::vector<std::filesystem::path> canonical_folders(
    std::vector<std::filesystem::path> folders);

// The folders of the innermost ReadScope of this thread; null if there is none.
[[nodiscard]] const std::vector<std::filesystem::path>* current_read_folders();

// Errors: the file is in none of the folders, after resolving links.
[[nodiscard]] Status may_read(const std::filesystem::path& file);
// An error inside a ReadScope with folders: nothing is written there.
[[nodiscard]] Status may_write(const std::filesystem::path& file);

}  // namespace stepcast

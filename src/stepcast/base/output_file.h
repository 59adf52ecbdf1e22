// A file that a program writes when its work is done, looked at before the work begins.
//
//   STEPCAST_ASSIGN(const OutputFile output, OutputFile::at("run7.json", traces));   // an input? a folder?
//   ...
//   STEPCAST_TRY(output.write(text));
//
// A regular file is replaced as a whole: a reader sees the old content or the new, never a part, and whoever
// is killed half-way leaves the old. Symbolic links stay and lead to the new content; a file that is replaced
// keeps its mode. (Hard links part: other names keep the old content.) What is no regular file is written to
// and stays what it is: devices, FIFOs, and open descriptors as /dev/stdout and /dev/fd/63 name them.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "stepcast/base/result.h"

namespace stepcast {

class OutputFile {
 public:
  // Errors: an empty path, a folder, a file in no folder, a file that must not be written, links in a circle,
  // and a file that is one of `inputs` by whatever name, as writing would destroy what the result is made of.
  [[nodiscard]] static Result<OutputFile> at(const std::filesystem::path& path,
                                             std::span<const std::filesystem::path> inputs = {});

  // As it was asked for.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // False for devices, FIFOs and open descriptors. True for a file that is not there yet.
  [[nodiscard]] bool is_regular() const { return is_regular_ && !descriptor_; }
  // False if symbolic links lead elsewhere.
  [[nodiscard]] bool stands_at_its_path() const { return is_regular() && target_ == path_; }
  // Errors of a full disk and the like are `of_machine`.
  [[nodiscard]] Status write(std::string_view content) const;

 private:
  OutputFile() = default;
  [[nodiscard]] Status replace(std::string_view content) const;

  std::filesystem::path path_;
  std::filesystem::path target_;   // behind all symbolic links
  std::optional<int> descriptor_;  // an open descriptor of this process
  bool is_regular_ = true;         // or will be: there is no such file yet
};

// True if both exist and are the same file, whatever their names.
[[nodiscard]] bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);

// Makes a folder and those above it; it may be there already. Errors: it cannot be made, nothing may be written (may_write()).
[[nodiscard]] Status make_folder(const std::filesystem::path& folder);

// `OutputFile::at(path)` and `write` in one, for what is not made of other files.
[[nodiscard]] Status write_file(const std::filesystem::path& path, std::string_view content);

}  // namespace stepcast

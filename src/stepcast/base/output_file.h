// The output file of a program. It is checked before the work and written after it.
//
//   STEPCAST_ASSIGN(const OutputFile output, OutputFile::at("run7.json", traces));   // an input? a folder?
//   ...
//   STEPCAST_TRY(output.write(text));
//
// A regular file is replaced atomically: readers see the old or the new content, and after a crash the old
// one remains. Symbolic links are kept and lead to the new content. The mode of a replaced file is kept;
// other hard links keep the old content. Special files (devices, FIFOs, and open descriptors such as
// /dev/stdout and /dev/fd/63) are written in place.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "stepcast/base/result.h"

namespace stepcast {

class OutputFile {
 public:
  // Errors: an empty path, a folder, a missing folder, missing write permission, circular links, and a file
  // that is one of `inputs` (under any name), because writing would destroy the data of the result.
  [[nodiscard]] static Result<OutputFile> at(const std::filesystem::path& path,
                                             std::span<const std::filesystem::path> inputs = {});

  // The path as given, before links were followed.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // True for regular files and files that do not exist yet; false for devices, FIFOs and open descriptors.
  [[nodiscard]] bool is_regular() const { return is_regular_ && !descriptor_; }
  // Whether the content is written at path() itself; false if symbolic links lead elsewhere.
  [[nodiscard]] bool stands_at_its_path() const { return is_regular() && target_ == path_; }
  // Writes the content at once. Errors of the machine, such as a full disk, are marked `of_machine`.
  [[nodiscard]] Status write(std::string_view content) const;

 private:
  OutputFile() = default;
  // Writes a temporary file in the same folder and renames it to the target.
  [[nodiscard]] Status replace(std::string_view content) const;

  std::filesystem::path path_;
  std::filesystem::path target_;   // after following all symbolic links
  std::optional<int> descriptor_;  // an open descriptor of this process
  bool is_regular_ = true;         // or the file does not exist yet
};

// True if both exist and are the same file, possibly under different names.
[[nodiscard]] bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);

// Makes a folder and those above it; it may be there already. Errors: it cannot be made, nothing may be written (may_write()).
[[nodiscard]] Status make_folder(const std::filesystem::path& folder);

// `OutputFile::at(path)` and `write` in one, for what is not made of other files.
[[nodiscard]] Status write_file(const std::filesystem::path& path, std::string_view content);

}  // namespace stepcast

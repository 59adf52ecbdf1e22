// Reads whole files, and compresses texts. output_file.h writes files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// The content of a file, decompressed if it is gzip. Errors: the file cannot be read, or has more than
// `max_bytes` bytes after decompression.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& file,
                                            std::uint64_t max_bytes = std::uint64_t{1} << 27);

// Paths of the .csv and .csv.gz files in a folder, sorted; with `below` also in its subfolders. Empty if the
// folder cannot be read.
[[nodiscard]] std::vector<std::filesystem::path> csv_files_in(const std::filesystem::path& folder,
                                                              bool below = false);

// `content` as one gzip member without name and time, so that equal contents give equal bytes. `level`: 1
// (fastest) to 9 (smallest).
[[nodiscard]] Result<std::string> gzip_compress(std::string_view content, int level = 6);

}  // namespace stepcast

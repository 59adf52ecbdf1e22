// Whole files: reading, and gzip compression. output_file.h writes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// The content of a file, decompressed if it is gzip. Larger (decompressed) content than `max_bytes` is an
// error.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& file,
                                            std::uint64_t max_bytes = std::uint64_t{1} << 27);

// The .csv and .csv.gz files of a folder, and `below` it, by name; none where it cannot be read.
[[nodiscard]] std::vector<std::filesystem::path> csv_files_in(const std::filesystem::path& folder,
                                                              bool below = false);

// `content` as one gzip member without name and time, so that equal content gives equal bytes. Level 1 (fast)
// to 9.
[[nodiscard]] Result<std::string> gzip_compress(std::string_view content, int level = 6);

}  // namespace stepcast

// Whole files: reading, writing without ever leaving half a file, gzip compression.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"

namespace stepcast {

// The content of a file, decompressed if it is gzip. Larger (decompressed) content than `max_bytes` is an
// error.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& file,
                                            std::uint64_t max_bytes = std::uint64_t{1} << 32);

// Writes a temporary file beside `file` and renames it: a reader sees the old content or the new, never a
// part.
[[nodiscard]] Status write_file_atomically(const std::filesystem::path& file, std::string_view content);

// `content` as one gzip member without name and time, so that equal content gives equal bytes. Level 1 (fast)
// to 9.
[[nodiscard]] Result<std::string> gzip_compress(std::string_view content, int level = 6);

}  // namespace stepcast

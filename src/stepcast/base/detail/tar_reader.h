// Reads tar archives sequentially, in the formats ustar, pax and GNU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "stepcast/base/byte_source.h"
#include "stepcast/base/result.h"

namespace stepcast::detail {

constexpr std::size_t kTarBlock = 512;

// Whether a file with this beginning (at least 512 bytes) is a tar archive, decided by the checksum of its first header.
[[nodiscard]] bool is_tar(std::string_view beginning);

// Iterates over the member files. Folders, links and devices are skipped.
class TarReader {
 public:
  explicit TarReader(ByteSource source) : source_(std::move(source)) {}

  // Moves to the next member file; false at the end. Errors: the archive is truncated or damaged, a sparse file.
  [[nodiscard]] Result<bool> next();
  [[nodiscard]] const std::string& member() const { return name_; }
  // Reads bytes of the current member; 0 only at its end.
  [[nodiscard]] Result<std::size_t> read(char* to, std::size_t capacity);

 private:
  // Skips the rest of the current member and reads the next header; false at the end of the archive.
  // read_text(): the content of a member that holds a name or pax records, at most 64 KiB.
  [[nodiscard]] Result<bool> read_header(std::string& header);
  [[nodiscard]] Result<std::string> read_text(std::uint64_t bytes);
  [[nodiscard]] Error cut_off() const;

  ByteSource source_;
  std::string name_;
  std::uint64_t left_ = 0;     // unread bytes of the current member
  std::uint64_t padding_ = 0;  // bytes after the member, up to the next 512-byte block
};

}  // namespace stepcast::detail

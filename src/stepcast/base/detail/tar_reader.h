// A tar archive from front to back: ustar, pax and GNU.
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

// Whether a file of this beginning, of 512 bytes at least, is one.
[[nodiscard]] bool is_tar(std::string_view beginning);

class TarReader {
 public:
  explicit TarReader(ByteSource source) : source_(std::move(source)) {}

  // Goes to the next member that is a file; false at the end. Errors: the archive was cut off or is damaged, a file with holes.
  [[nodiscard]] Result<bool> next();
  [[nodiscard]] const std::string& member() const { return name_; }
  // Bytes of this member; 0 only at its end.
  [[nodiscard]] Result<std::size_t> read(char* to, std::size_t capacity);

 private:
  [[nodiscard]] Result<bool> read_header(std::string& header);
  [[nodiscard]] Result<std::string> read_text(std::uint64_t bytes);
  [[nodiscard]] Error cut_off() const;

  ByteSource source_;
  std::string name_;
  std::uint64_t left_ = 0;     // of the member
  std::uint64_t padding_ = 0;  // behind it
};

}  // namespace stepcast::detail

// The members of a zip archive, stored or deflated, with or without zip64. They are streamed and may be larger than the
// memory.
//
//   STEPCAST_ASSIGN(ZipFile file, ZipFile::open("traces.zip"));
//   STEPCAST_ASSIGN(ZipMember member, file.member("traces/rank0.json", "member traces/rank0.json"));
//   STEPCAST_ASSIGN(const std::size_t n, member.read(block, sizeof block));
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// One member, read from front to back. It keeps the file open by itself.
class ZipMember {
 public:
  ZipMember(ZipMember&&) noexcept;
  ZipMember& operator=(ZipMember&&) noexcept;
  ~ZipMember();

  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] std::uint64_t bytes_left() const;
  // Exactly the next `n` bytes. Errors: the member ends early, is damaged, or its checksum is wrong (at its last byte).
  [[nodiscard]] Status take(char* to, std::size_t n);
  // As many as there are up to `capacity`; 0 only at the end.
  [[nodiscard]] Result<std::size_t> read(char* to, std::size_t capacity);

 private:
  friend class ZipFile;
  struct Impl;
  ZipMember();
  std::unique_ptr<Impl> impl_;
};

class ZipFile {
 public:
  // Whether the file begins as a zip archive does.
  [[nodiscard]] static bool is_zip(const std::filesystem::path& file);
  // Errors: no zip archive, a directory of it that points out of the file, more than 10,000 members.
  [[nodiscard]] static Result<ZipFile> open(const std::filesystem::path& file);
  [[nodiscard]] static Result<ZipFile> from_memory(std::string content, const std::string& name);

  [[nodiscard]] const std::string& name() const;
  // Names, in the order of the archive; those of folders end in a slash.
  [[nodiscard]] std::vector<std::string> members() const;
  // `place` stands for the member in errors: no such member; encrypted, or compressed otherwise; a size that its compressed
  // bytes cannot hold.
  [[nodiscard]] Result<ZipMember> member(std::string_view name, std::string place) const;

 private:
  friend class ZipMember;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace stepcast

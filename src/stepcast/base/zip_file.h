// Reads members of zip archives, stored or deflated, with or without zip64. Members are streamed, so they may
// be larger than memory.
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

// One member, read sequentially. It keeps the file open, independently of its ZipFile.
class ZipMember {
 public:
  ZipMember(ZipMember&&) noexcept;
  ZipMember& operator=(ZipMember&&) noexcept;
  ~ZipMember();

  // Size of the content, and the bytes that were not read yet.
  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] std::uint64_t bytes_left() const;
  // Reads exactly `n` bytes. Errors: the member ends early, is damaged, or has a wrong checksum (found at its last byte).
  [[nodiscard]] Status take(char* to, std::size_t n);
  // Reads up to `capacity` bytes and returns their number; 0 only at the end.
  [[nodiscard]] Result<std::size_t> read(char* to, std::size_t capacity);

 private:
  friend class ZipFile;
  struct Impl;
  ZipMember();
  std::unique_ptr<Impl> impl_;
};

class ZipFile {
 public:
  // Whether the file begins with the magic of a zip archive.
  [[nodiscard]] static bool is_zip(const std::filesystem::path& file);
  // Errors: not a zip archive, a directory that points outside the file, more than 10,000 members.
  [[nodiscard]] static Result<ZipFile> open(const std::filesystem::path& file);
  [[nodiscard]] static Result<ZipFile> from_memory(std::string content, const std::string& name);

  [[nodiscard]] const std::string& name() const;
  // Names in archive order. Those of folders end with a slash.
  [[nodiscard]] std::vector<std::string> members() const;
  // Opens a member. `place` denotes it in errors. Errors: no such member, encryption, another compression
  // method, a size that the compressed bytes cannot expand to.
  [[nodiscard]] Result<ZipMember> member(std::string_view name, std::string place) const;

 private:
  friend class ZipMember;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace stepcast

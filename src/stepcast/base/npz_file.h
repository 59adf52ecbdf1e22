// Reads integer arrays from .npz files: zip archives of .npy members, as written by numpy.savez and savez_compressed
// (stored or deflated, with or without zip64). Arrays are streamed, so they may be larger than memory.
//
//   STEPCAST_ASSIGN(NpzFile file, NpzFile::open("batch.npz"));
//   STEPCAST_ASSIGN(NpzArray array, file.array("indices"));      // array.shape
//   std::vector<std::int64_t> values(1000);
//   STEPCAST_TRY(array.read(values));                            // the first 1000
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/base/zip_file.h"

namespace stepcast {

// One array, read sequentially. It keeps the file open, independently of its NpzFile.
class NpzArray {
 public:
  NpzArray(NpzArray&&) noexcept;
  NpzArray& operator=(NpzArray&&) noexcept;
  ~NpzArray();

  std::vector<std::int64_t> shape;  // row-major; empty for a single number
  // Number of elements.
  [[nodiscard]] std::uint64_t count() const;
  // Fills `values` with the next elements. Errors: too few are left; the member ends early, is damaged or has
  // a wrong checksum (found at the last element); a uint64 of 2^63 or more.
  [[nodiscard]] Status read(std::span<std::int64_t> values);

 private:
  friend class NpzFile;
  struct Impl;
  NpzArray();
  std::unique_ptr<Impl> impl_;
};

class NpzFile {
 public:
  // Errors: not a zip archive, a directory that points outside the file, more than 10,000 members.
  [[nodiscard]] static Result<NpzFile> open(const std::filesystem::path& file);
  [[nodiscard]] static Result<NpzFile> from_memory(std::string content, const std::string& name);

  [[nodiscard]] const std::string& name() const;
  // Names without ".npy", in archive order. Other members are ignored.
  [[nodiscard]] std::vector<std::string> arrays() const;
  [[nodiscard]] bool has(std::string_view array) const;
  // Errors: no such array; a member that is encrypted or has another compression method; elements that are
  // not little-endian integers; column-major order; a shape that does not match the size of the member; a
  // size that the compressed bytes cannot expand to.
  [[nodiscard]] Result<NpzArray> array(std::string_view name) const;

 private:
  explicit NpzFile(ZipFile zip) : zip_(std::move(zip)) {}
  ZipFile zip_;
};

}  // namespace stepcast

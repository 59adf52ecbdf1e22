// Arrays of whole numbers in a .npz file, the zip archive of .npy members that numpy.savez and savez_compressed
// write: stored or deflated, with or without zip64. Arrays are streamed and may be larger than the memory.
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

// One array, read from front to back. It keeps the file open by itself.
class NpzArray {
 public:
  NpzArray(NpzArray&&) noexcept;
  NpzArray& operator=(NpzArray&&) noexcept;
  ~NpzArray();

  std::vector<std::int64_t> shape;  // row-major; empty for a single number
  [[nodiscard]] std::uint64_t count() const;
  // Fills `values` with the next elements. Errors: fewer are left, the member ends early, is damaged, or its
  // checksum is wrong (at the last element).
  [[nodiscard]] Status read(std::span<std::int64_t> values);

 private:
  friend class NpzFile;
  struct Impl;
  NpzArray();
  std::unique_ptr<Impl> impl_;
};

class NpzFile {
 public:
  // Errors: no zip archive, a directory of it that points out of the file, more than 10,000 members.
  [[nodiscard]] static Result<NpzFile> open(const std::filesystem::path& file);
  [[nodiscard]] static Result<NpzFile> from_memory(std::string content, const std::string& name);

  [[nodiscard]] const std::string& name() const;
  // Without ".npy", in the order of the archive; other members do not count.
  [[nodiscard]] std::vector<std::string> arrays() const;
  [[nodiscard]] bool has(std::string_view array) const;
  // Errors: no such array; encrypted, or compressed otherwise; an element type that is no whole number; columns
  // first; a shape that does not go with the size of the member; a size that its compressed bytes cannot hold.
  [[nodiscard]] Result<NpzArray> array(std::string_view name) const;

 private:
  explicit NpzFile(ZipFile zip) : zip_(std::move(zip)) {}
  ZipFile zip_;
};

}  // namespace stepcast

// A stream of bytes from a file or from memory, decompressed on the fly when the content is gzip.
//
//   STEPCAST_ASSIGN(ByteSource source, ByteSource::open("trace.json.gz"));
//   char block[65536];
//   for (;;) {
//     STEPCAST_ASSIGN(const std::size_t n, source.read(block, sizeof block));
//     if (n == 0) break;
//     ...
//   }
//
// Gzip is recognised by its magic number, never by the file name. A file of several gzip members is one
// stream. A file may be in an archive: "traces.tgz/rank0.json" (archive.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "stepcast/base/result.h"

namespace stepcast {

// The decompressor. `automatic` is ISA-L if it is linked, else zlib.
enum class InflateEngine : std::uint8_t { automatic, zlib };

// A source of bytes: writes up to `capacity` bytes to `to` and returns their number; 0 only at the end.
using ByteInput = std::function<Result<std::size_t>(char* to, std::size_t capacity)>;

class ByteSource {
 public:
  struct Options {
    // Called about once per MiB of input and at the end, with the number of bytes read and the size of the
    // file. Not called for members of archives.
    std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress;
    // Limit of decompressed bytes; more is an error. It protects against decompression bombs.
    std::uint64_t max_bytes = std::uint64_t{1} << 40;
    InflateEngine engine = InflateEngine::automatic;
  };

  [[nodiscard]] static Result<ByteSource> open(const std::filesystem::path& file) {
    return open(file, Options{});
  }
  [[nodiscard]] static Result<ByteSource> open(const std::filesystem::path& file, Options options);
  // `content` must outlive the source. `name` denotes the source in errors.
  [[nodiscard]] static ByteSource from_memory(std::string_view content, std::string name) {
    return from_memory(content, std::move(name), Options{});
  }
  [[nodiscard]] static ByteSource from_memory(std::string_view content, std::string name, Options options);
  [[nodiscard]] static ByteSource from_input(ByteInput input, std::string name, Options options);

  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;
  ~ByteSource();

  // Writes up to `capacity` bytes to `to` and returns their number; 0 only at the end. After an error the
  // source must not be used again.
  [[nodiscard]] Result<std::size_t> read(char* to, std::size_t capacity);
  // The next `n` bytes, or fewer at the end. read() still returns them afterwards. An error after the first
  // byte is returned by a later call instead. The view is valid until the next call.
  [[nodiscard]] Result<std::string_view> peek(std::size_t n);
  // Skips `n` bytes and returns how many were skipped: fewer at the end. Takes constant time in uncompressed files.
  [[nodiscard]] Result<std::uint64_t> skip(std::uint64_t n);

  [[nodiscard]] const std::string& name() const;
  // Whether the content is gzip. Valid after the first read; false before.
  [[nodiscard]] bool compressed() const;

 private:
  struct Impl;
  explicit ByteSource(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepcast

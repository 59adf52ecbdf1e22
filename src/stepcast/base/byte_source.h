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
// Gzip is told from its magic number, never from the file's name; a file of several gzip members is one
// stream. A file may lie in an archive: "traces.tgz/rank0.json" (archive.h).
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

// Which implementation decompresses. `automatic` is ISA-L where the build has it, zlib otherwise.
enum class InflateEngine : std::uint8_t { automatic, zlib };

// Where bytes come from: writes up to `capacity` of them to `to` and returns how many; 0 only at the end.
using ByteInput = std::function<Result<std::size_t>(char* to, std::size_t capacity)>;

class ByteSource {
 public:
  struct Options {
    // Called about once per MiB of the file, and at its end, with the file's bytes read so far and in total; never for what
    // comes out of an archive.
    std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress;
    // Reading beyond this many (decompressed) bytes is an error: a guard against decompression bombs.
    std::uint64_t max_bytes = std::uint64_t{1} << 40;
    InflateEngine engine = InflateEngine::automatic;
  };

  [[nodiscard]] static Result<ByteSource> open(const std::filesystem::path& file) {
    return open(file, Options{});
  }
  [[nodiscard]] static Result<ByteSource> open(const std::filesystem::path& file, Options options);
  // `content` must outlive the source; `name` stands for the file in errors.
  [[nodiscard]] static ByteSource from_memory(std::string_view content, std::string name) {
    return from_memory(content, std::move(name), Options{});
  }
  [[nodiscard]] static ByteSource from_memory(std::string_view content, std::string name, Options options);
  [[nodiscard]] static ByteSource from_input(ByteInput input, std::string name, Options options);

  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;
  ~ByteSource();

  // Writes up to `capacity` bytes to `to` and returns how many; 0 only at the end. After an error the source
  // is spent.
  [[nodiscard]] Result<std::size_t> read(char* to, std::size_t capacity);
  // The next `n` bytes, fewer at the end, which read() delivers all the same. An error behind the first of them is left to it.
  [[nodiscard]] Result<std::string_view> peek(std::size_t n);
  // Leaves `n` bytes out and returns how many there were: fewer at the end. In a file that is not compressed it costs nothing.
  [[nodiscard]] Result<std::uint64_t> skip(std::uint64_t n);

  [[nodiscard]] const std::string& name() const;
  // True once the first read has seen the gzip magic.
  [[nodiscard]] bool compressed() const;

 private:
  struct Impl;
  explicit ByteSource(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepcast

// Decompression of gzip members, by zlib (byte_source.cpp) or, several times as fast, by ISA-L where that is linked.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace stepcast::detail {

constexpr std::size_t kMaxStep = std::size_t{1} << 30;  // both libraries count with 32 bits

// One step of decompression: what it took and gave, and whether a gzip member ended. `problem` is null unless
// the data is corrupt.
struct InflateStep {
  // Negative when bytes of an earlier step are given back: ISA-L reads ahead by up to 8 bytes, and returns
  // those behind a member's end.
  std::ptrdiff_t consumed = 0;
  std::size_t produced = 0;
  bool member_ended = false;
  const char* problem = nullptr;
};

class Inflater {
 public:
  Inflater() = default;
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  virtual ~Inflater() = default;
  virtual void start_member() = 0;
  virtual InflateStep step(std::string_view input, char* to, std::size_t capacity) = 0;
};

// Null where the program was linked without ISA-L (isal/isal_inflater.cpp).
[[nodiscard]] std::unique_ptr<Inflater> isal_inflater();

}  // namespace stepcast::detail

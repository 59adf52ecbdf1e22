// Interface of gzip decompressors: zlib (byte_source.cpp) and ISA-L, which is several times as fast and used
// where it is linked.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace stepcast::detail {

// Largest block of one step: both libraries use 32-bit sizes.
constexpr std::size_t kMaxStep = std::size_t{1} << 30;

// Result of one step: bytes consumed and produced, and whether a gzip member ended. `problem` is null unless
// the data is corrupt; it points to a static text.
struct InflateStep {
  // Negative if bytes of an earlier step are returned: ISA-L reads up to 8 bytes ahead and gives back those
  // after the end of a member.
  std::ptrdiff_t consumed = 0;
  std::size_t produced = 0;
  bool member_ended = false;
  const char* problem = nullptr;
};

// Decompresses a sequence of gzip members. Call start_member() before the first step of each.
class Inflater {
 public:
  Inflater() = default;
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  virtual ~Inflater() = default;
  virtual void start_member() = 0;
  virtual InflateStep step(std::string_view input, char* to, std::size_t capacity) = 0;
};

// Null if the program was linked without ISA-L (isal/isal_inflater.cpp).
[[nodiscard]] std::unique_ptr<Inflater> isal_inflater();

}  // namespace stepcast::detail

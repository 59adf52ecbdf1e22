// Numbers in the bytes of zip and npz files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stepcast::detail {

// The little-endian number of `n` bytes at `at`, which have to be there.
[[nodiscard]] inline std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t n) {
  std::uint64_t value = 0;
  for (std::size_t i = n; i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace stepcast::detail

// Reads little-endian numbers of zip and npz files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stepcast::detail {

// The unsigned little-endian number of the `n` bytes (at most 8) at offset `at`, which must exist.
[[nodiscard]] inline std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t n) {
  std::uint64_t value = 0;
  for (std::size_t i = n; i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace stepcast::detail

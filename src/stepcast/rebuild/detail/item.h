// Access to elements by the 32-bit positions that rank graphs use.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stepcast::detail {

// `list[i]`; i must not be kNone.
template <class List>
[[nodiscard]] decltype(auto) item(List& list, std::int32_t i) {
  return list[static_cast<std::size_t>(i)];
}

// Position of the next element that is appended.
template <class List>
[[nodiscard]] std::int32_t next_position(const List& list) {
  return static_cast<std::int32_t>(list.size());
}

}  // namespace stepcast::detail

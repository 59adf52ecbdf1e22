// Elements by the 32-bit positions that graphs of ranks keep.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stepcast::detail {

// `list[i]`; i is not kNone.
template <class List>
[[nodiscard]] decltype(auto) item(List& list, std::int32_t i) {
  return list[static_cast<std::size_t>(i)];
}

// Where the next element will stand.
template <class List>
[[nodiscard]] std::int32_t next_position(const List& list) {
  return static_cast<std::int32_t>(list.size());
}

}  // namespace stepcast::detail

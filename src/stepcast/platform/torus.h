// Boxes of chips of a torus: what a group of ranks, or a smaller slice, takes of it.
//
//   intra.axes = {16, 16}, intra.ring_chips = 16
//   torus_box(intra, 256)    16 x 16, 4 links of a chip that carry a ring over both axes
//   torus_box(intra, 32)     2 x 16, 3 links: one axis closes
//   slice_axes(intra, 32)    4 x 8
#pragma once

#include <cstdint>
#include <vector>

#include "stepcast/platform/platform.h"

namespace stepcast {

struct TorusBox {
  std::vector<std::uint32_t> sides;  // chips along each axis
  // Links of a chip that a ring over all axes keeps busy, one direction each: two along an axis that closes, one along
  // a line, whose ends have no more.
  double links = 0;
  // Of all that the chips send to all others, the share of one chip's that passes each link across the worst cut through
  // the middle of an axis: 1 where a link passes all that one chip sends.
  double cut_load = 0;
  double hops = 0;  // from a chip to the farthest
};

// The box of `n_chips` with most links, then with the widest cut. No side is longer than its axis where that can be had;
// otherwise the chips lie in a line.
[[nodiscard]] TorusBox torus_box(const IntraNode& torus, std::uint32_t n_chips);

// The axes of a slice of `n_chips`, as they are cut: the box of the shortest sides.
[[nodiscard]] std::vector<std::uint32_t> slice_axes(const IntraNode& torus, std::uint32_t n_chips);

}  // namespace stepcast

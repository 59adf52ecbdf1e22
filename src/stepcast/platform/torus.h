// Boxes of chips within a torus, for groups of ranks and smaller slices.
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

// A box and its communication properties.
struct TorusBox {
  std::vector<std::uint32_t> sides;  // chips along each axis
  // Links per chip that a ring over all axes uses, one direction each: two along an axis that closes, one
  // along a line, since its ends have only one.
  double links = 0;
  // Load of each link across the worst cut through the middle of an axis in an all_to_all, as a share of the
  // data that one chip sends: 1 where a link carries all of the data of one chip.
  double cut_load = 0;
  double hops = 0;  // from a chip to the farthest chip
};

// The box of `n_chips` with most links, then with the lowest cut load. Sides do not exceed their axes where
// possible; otherwise the chips form a line.
[[nodiscard]] TorusBox torus_box(const IntraNode& torus, std::uint32_t n_chips);

// The axes of a slice of `n_chips`: the box with the smallest sum of sides.
[[nodiscard]] std::vector<std::uint32_t> slice_axes(const IntraNode& torus, std::uint32_t n_chips);

}  // namespace stepcast

// Collectives on a torus, from its links: rings along the axes of the group's box, on all of their links at
// once.
//
//   // 64 chips as 4 x 4 x 4, rings along all three axes: 6 links of a chip
//   torus_load(CollectiveOp::all_gather, torus, 64).messages_per_link   63/64 of the message over 6 links
//   torus_load(CollectiveOp::all_to_all, torus, 64).messages_per_link   1/2: the cut in the middle
//
// Rings along every axis at once, each with a part of the message, move as much as one ring over all chips:
// (n-1)/n of the message in and out of a chip (all_gather, reduce_scatter), twice that for an all_reduce. In
// an all_to_all, half of the data that every chip sends crosses the middle of an axis. Devices of one chip
// share its links, and a group fills whole chips first.
#pragma once

#include <cstdint>

#include "stepcast/operation/collective_kind.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// Load of the busiest link.
struct TorusLoad {
  double messages_per_link = 0;  // traffic of the busiest link in one direction, over the message
  double hops = 0;               // consecutive hops
};
[[nodiscard]] TorusLoad torus_load(CollectiveOp op, const IntraNode& torus, std::uint32_t n_ranks);

// Bandwidth of one direction of one link: the devices of a chip together have two links along each axis.
[[nodiscard]] BytesPerSecond torus_link_bandwidth(const IntraNode& torus);

}  // namespace stepcast

// Collectives on a torus, from its links: rings over the axes that a group takes, on all of their links at once.
//
//   // 64 chips as 4 x 4 x 4, rings along all three axes: 6 links of a chip
//   torus_load(CollectiveOp::all_gather, torus, 64).messages_per_link   63/64 of the message over 6 links
//   torus_load(CollectiveOp::all_to_all, torus, 64).messages_per_link   1/2: the cut through the middle decides
//
// A ring along every axis at once, each with its part of the message, moves as much as one over all chips would: (n-1)/n of
// it in and out of a chip (all_gather, reduce_scatter), twice that for an all_reduce. In an all_to_all half of what every
// chip sends crosses the middle of an axis. Devices of one chip share its links, and a group fills chips before it takes
// others.
#pragma once

#include <cstdint>

#include "stepcast/operation/collective_kind.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

struct TorusLoad {
  double messages_per_link = 0;  // what the busiest link passes in one direction, over the message
  double hops = 0;               // that follow each other
};
[[nodiscard]] TorusLoad torus_load(CollectiveOp op, const IntraNode& torus, std::uint32_t n_ranks);

// One direction of one link: the devices of a chip together have two along each axis.
[[nodiscard]] BytesPerSecond torus_link_bandwidth(const IntraNode& torus);

}  // namespace stepcast

#include "stepcast/cost/torus_collective.h"

#include <algorithm>

#include "stepcast/platform/torus.h"

namespace stepcast {

TorusLoad torus_load(CollectiveOp op, const IntraNode& torus, std::uint32_t n_ranks) {
  const std::uint32_t on_chip = std::min(torus.devices_per_chip.value_or(1), n_ranks);
  const std::uint32_t chips = (n_ranks + on_chip - 1) / on_chip;
  // Devices of one chip reach each other at the rate of all its links together; an assumption on the low
  // side.
  const double all_links = 2.0 * static_cast<double>(torus.axes.size());
  if (chips < 2) return {(n_ranks - 1.0) / n_ranks / all_links, 1};
  const TorusBox box = torus_box(torus, chips);
  const double around = (chips - 1.0) / chips / box.links;
  switch (op) {
    case CollectiveOp::send:
    case CollectiveOp::receive:
    case CollectiveOp::send_receive: return {1, 1};
    case CollectiveOp::all_reduce: return {2 * around, 2 * box.hops};
    case CollectiveOp::all_to_all: return {on_chip * std::max(around, box.cut_load), box.hops};
    default: return {around, box.hops};
  }
}

BytesPerSecond torus_link_bandwidth(const IntraNode& torus) {
  return torus.bandwidth_per_gpu *
         (torus.devices_per_chip.value_or(1) / (2.0 * static_cast<double>(torus.axes.size())));
}

}  // namespace stepcast

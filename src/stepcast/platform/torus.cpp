#include "stepcast/platform/torus.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

namespace stepcast {
namespace {

// A box with its links, cut load and hops. An axis of two chips has one link, not a ring.
TorusBox measured_box(const IntraNode& torus, std::vector<std::uint32_t> sides) {
  TorusBox box{.sides = std::move(sides)};
  for (const std::uint32_t side : box.sides) {
    if (side < 2) continue;
    // Two chips have one link, not a ring.
    const bool ring = torus.ring_chips && side > 2 && side % *torus.ring_chips == 0;
    const std::uint32_t shorter = side / 2;
    const double ways = ring ? 2 : 1, half = shorter, other = side - shorter;
    box.links += ways;
    box.cut_load = std::max(box.cut_load, half * other / (side * ways));
    box.hops += ring ? half : side - 1;
  }
  return box;
}

// Calls `visit` with all factorisations of `n_chips` into sides within `axes`; `sides` contains the sides
// chosen so far.
template <class Visit>
void for_each_box(const std::vector<std::uint32_t>& axes, std::uint32_t n_chips,
                  std::vector<std::uint32_t>& sides, const Visit& visit) {
  if (sides.size() == axes.size()) {
    if (n_chips == 1) visit(sides);
    return;
  }
  const std::uint32_t longest = std::min(axes[sides.size()], n_chips);
  for (std::uint32_t side = 1; side <= longest; ++side) {
    if (n_chips % side != 0) continue;
    sides.push_back(side);
    for_each_box(axes, n_chips / side, sides, visit);
    sides.pop_back();
  }
}

// The box with the highest worth; a line if no box has this number of chips.
template <class Worth>
TorusBox best_box(const IntraNode& torus, std::uint32_t n_chips, const Worth& worth) {
  TorusBox best;
  std::vector<std::uint32_t> sides;
  for_each_box(torus.axes, n_chips, sides, [&](const std::vector<std::uint32_t>& found) {
    TorusBox box = measured_box(torus, found);
    if (best.sides.empty() || worth(box) > worth(best)) best = std::move(box);
  });
  if (!best.sides.empty()) return best;
  std::vector<std::uint32_t> line(std::max<std::size_t>(torus.axes.size(), 1), 1);
  line.front() = n_chips;
  return measured_box(torus, std::move(line));
}

}  // namespace

TorusBox torus_box(const IntraNode& torus, std::uint32_t n_chips) {
  // Most links first, then the least load of the cut, then the fewest hops.
  return best_box(torus, n_chips, [](const TorusBox& b) {
    return std::tuple{b.links, -b.cut_load, -b.hops};
  });
}

std::vector<std::uint32_t> slice_axes(const IntraNode& torus, std::uint32_t n_chips) {
  return best_box(torus, n_chips,
                  [](const TorusBox& b) {
                    return -std::accumulate(b.sides.begin(), b.sides.end(), std::int64_t{0});
                  })
      .sides;
}

}  // namespace stepcast

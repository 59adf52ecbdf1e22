// Curves of collectives on unmeasured counts of ranks and nodes, scaled from measured ones.
//
//   const std::array measured{RankCurve{2, &two}, RankCurve{4, &four}};
//   TimeCurve eight = scale_ranks(CollectiveOp::all_reduce, measured, 8);
#pragma once

#include <cstdint>
#include <span>

#include "stepcast/cost/collective_curve.h"
#include "stepcast/cost/nccl_choice.h"
#include "stepcast/operation/collective_kind.h"

namespace stepcast {

// A curve and its number of ranks.
struct RankCurve {
  std::uint32_t n_ranks = 1;
  const TimeCurve* curve = nullptr;
};

// The curve for `n_ranks` from curves of the same collective on other rank counts (at least one), ordered by
// rank count. Outside the measured counts two models are averaged (in ln). Equal shares: a ring moves shares
// of message / ranks in 2(n-1) or n-1 steps, so the time is a start-up plus steps x time of a step. Equal
// messages: start-up grows with the ranks while bus bandwidth stays. The band widens by their disagreement.
[[nodiscard]] TimeCurve scale_ranks(CollectiveOp op, std::span<const RankCurve> measured,
                                    std::uint32_t n_ranks);

// The curve for `n_nodes` nodes from one on `from_nodes` >= 2 nodes with the same number of ranks per node:
// bus bandwidth stays, start-up grows with the depth of the tree over nodes.
[[nodiscard]] TimeCurve scale_nodes(CollectiveOp op, const TimeCurve& measured, std::uint32_t from_nodes,
                                    std::uint32_t n_nodes, std::uint32_t ranks_per_node);

// A group of ranks, with equal numbers on each node.
struct RanksOnNodes {
  std::uint32_t n_ranks = 1, n_nodes = 1;
};

// The curve for `to` from the curve of a smaller group `from`, multiplied by the ratio of NCCL's estimates on
// this fabric. Send/receive curves do not depend on the group and are returned unchanged.
[[nodiscard]] TimeCurve grow_as_nccl(CollectiveOp op, const TimeCurve& measured, const NcclFabric& fabric,
                                     RanksOnNodes from, RanksOnNodes to);

}  // namespace stepcast

// The time of any collective on any group of ranks of a platform.
//
//   const CollectiveModel model{platform};
//   const CollectiveGroup group{.op = CollectiveOp::all_reduce, .n_ranks = 8};
//   STEPCAST_ASSIGN(const ResolvedCollective c, model.resolve(group));
//   Estimate t = c.curve.at(Bytes{25e6});  // tens of nanoseconds: resolve once, ask often
//   c.how                                  // "fitted on this group", "scaled from 2 and 4 ranks", ...
//
// A group is looked up in this order. Each step down widens the band and is named in `how`:
//   1. a curve of exactly this group in the platform
//   2. curves of the same collective on other rank counts of one node: scale_ranks() (collective_scaling.h)
//   3. several nodes: curves on other node counts: scale_ranks() or scale_nodes(); else the hierarchical
//      composition of an intra-node part and the network
//   4. curves of a related collective (all_gather for reduce_scatter, ...)
//   5. measured nodes of other machines, if the platform carries them (related_systems.h)
//   6. bandwidths and latencies of the platform
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/on_demand.h"
#include "stepcast/base/result.h"
#include "stepcast/cost/collective_curve.h"
#include "stepcast/cost/related_systems.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// A group of ranks, and the concurrent traffic on the NICs of its nodes.
struct CollectiveGroup {
  CollectiveOp op = CollectiveOp::all_reduce;
  DType dtype = DType::unknown;  // element type; `unknown` matches any curve
  std::uint32_t n_ranks = 1;     // of the whole group
  std::uint32_t n_nodes = 1;     // nodes that the group spans
  // For a group with unequal ranks per node (5 ranks here, 3 there): the smallest number on a node. 0: equal
  // on all nodes.
  std::uint32_t min_ranks_per_node = 0;
  // Number of groups of this kind per node that communicate at once and share its NICs: for example 8
  // data-parallel groups on 8-GPU nodes with tensor parallelism 8.
  std::uint32_t groups_per_node = 1;
  // All ranks have the same local index in their nodes, so a rail-optimised network carries the group on one
  // rail.
  bool rail_aligned = true;
  // Factor on the transfers between nodes for other traffic on the links behind the NICs.
  double network_slowdown = 1;

  // Ranks per node, rounded up.
  [[nodiscard]] std::uint32_t ranks_per_node() const {
    return n_nodes > 0 ? (n_ranks + n_nodes - 1) / n_nodes : n_ranks;
  }
};

// The curve of a group, and a phrase that says where it came from, for reports.
struct ResolvedCollective {
  TimeCurve curve;
  std::string how;
};

// Resolves groups to curves. Copies what it needs of the platform; resolve() is const.
class CollectiveModel {
 public:
  // Reads the curves of the platform. Unreadable curves are skipped and named in skipped().
  explicit CollectiveModel(const Platform& platform);

  // Speeds up or slows down the links inside nodes and the NICs by factors. The figures change as if the
  // platform file stated them, and the measured curves scale accordingly.
  void set_speeds(double intra_node, double network);
  [[nodiscard]] double intra_speed() const { return intra_speed_; }
  [[nodiscard]] double network_speed() const { return network_speed_; }
  // The node, with the bandwidths after set_speeds().
  [[nodiscard]] const Node& node() const { return node_; }

  // Errors: the collective is unknown, or the platform cannot contain the group (more ranks than GPUs of a
  // node on one node, several nodes without a network).
  [[nodiscard]] Result<ResolvedCollective> resolve(const CollectiveGroup& group) const;

  [[nodiscard]] const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  // One measured curve and the group it was measured on; parsed on first use.
  struct Entry {
    CollectiveOp op;
    DType dtype;
    std::uint32_t n_nodes, gpus_per_node, n_ranks;
    std::shared_ptr<const detail::OnDemand<TimeCurve>> times;
    [[nodiscard]] const TimeCurve& curve() const { return *times->get(); }
  };
  struct NodePlan;
  // Curves of this collective on this platform (as_measured) or on other machines, scaled to the current
  // speeds. None: nothing was measured.
  [[nodiscard]] std::optional<ResolvedCollective> from_curves(const CollectiveGroup& group,
                                                              CollectiveOp op) const;
  // Only from curves of this platform: exact group, or scaled from other rank or node counts.
  [[nodiscard]] std::optional<ResolvedCollective> as_measured(const CollectiveGroup& group,
                                                              CollectiveOp op) const;
  // From a related collective of the same group, or for send/receive from a pair.
  [[nodiscard]] std::optional<ResolvedCollective> from_related(const CollectiveGroup& group) const;
  // From measured nodes of other machines; only inside one node.
  [[nodiscard]] std::optional<ResolvedCollective> from_other_systems(const CollectiveGroup& group,
                                                                     CollectiveOp op) const;
  // From bandwidths and latencies alone.
  [[nodiscard]] ResolvedCollective inside_node(const CollectiveGroup& group) const;
  [[nodiscard]] ResolvedCollective across_nodes(const CollectiveGroup& group) const;
  // Curves for `op` that apply to `dtype`, best match first, one per group.
  [[nodiscard]] std::vector<const Entry*> same_op(CollectiveOp op, DType dtype) const;

  Device device_;
  Node stated_node_, node_;  // as in the platform, and after set_speeds()
  double intra_speed_ = 1, network_speed_ = 1;
  std::vector<Entry> entries_;
  std::optional<RelatedSystems> related_;  // only for platforms without curves measured on one node
  std::vector<std::string> skipped_;
};

// How the size for an all_to_all curve is derived where ranks send different amounts.
enum class UnevenRule : std::uint8_t {
  // As published: the maximum over ranks of (sum of the other ranks' shares, (n-1) x this rank's share),
  // where a share is the number of bytes that a rank sends to each other rank. The local part of a rank is
  // missing from this size and a second time from the bus factor, so a balanced load gets (n-1)/n of the
  // measured time.
  published,
  // The same maximum times n/(n-1): a balanced load of n shares gets the curve's size, n shares.
  corrected,
};
// Size to ask the curve for, from the bytes that each rank sends to each other rank. 0 for fewer than two
// ranks.
[[nodiscard]] Bytes uneven_all_to_all_size(std::span<const Bytes> share_of_rank,
                                           UnevenRule rule = UnevenRule::corrected);
// From the whole matrix, sent[i * n + j] = bytes that rank i sends to rank j: the largest amount that a rank
// sends to or receives from the others, times n/(n-1). 0 if the matrix is not n x n.
[[nodiscard]] Bytes uneven_all_to_all_size(std::span<const Bytes> sent, std::uint32_t n_ranks);

}  // namespace stepcast

// The time of any collective on any group of ranks of a platform.
//
//   const CollectiveModel model{platform};
//   const CollectiveGroup group{.op = CollectiveOp::all_reduce, .n_ranks = 8};
//   STEPCAST_ASSIGN(const ResolvedCollective c, model.resolve(group));
//   Estimate t = c.curve.at(Bytes{25e6});  // tens of nanoseconds: resolve once, ask often
//   c.how                                  // "fitted on this group", "scaled from 2 and 4 ranks", ...
//
// A group is looked up in this order; every step down widens the band and is told in `how`:
//   1. a curve of this very group in the platform
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

// A group of ranks, and who else of its nodes communicates at the same time.
struct CollectiveGroup {
  CollectiveOp op = CollectiveOp::all_reduce;
  DType dtype = DType::unknown;
  std::uint32_t n_ranks = 1;
  std::uint32_t n_nodes = 1;
  // A group that straddles nodes unevenly (5 ranks here, 3 there): the smallest share. 0: all nodes hold as
  // many.
  std::uint32_t min_ranks_per_node = 0;
  // Groups of this kind on every node that communicate at once and share its network adapters: 8
  // data-parallel groups beside each other on 8-GPU nodes with tensor parallelism 8.
  std::uint32_t groups_per_node = 1;
  // All its ranks sit at the same place in their nodes, so a rail-optimised network carries it on one rail.
  bool rail_aligned = true;
  // Its transfers between nodes take so many times as long for what else passes the links behind the adapters.
  double network_slowdown = 1;

  [[nodiscard]] std::uint32_t ranks_per_node() const {
    return n_nodes > 0 ? (n_ranks + n_nodes - 1) / n_nodes : n_ranks;
  }
};

struct ResolvedCollective {
  TimeCurve curve;
  std::string how;
};

class CollectiveModel {
 public:
  // Reads the curves of the platform; curves that cannot be read are named in skipped().
  explicit CollectiveModel(const Platform& platform);

  // Links inside nodes, or network adapters, that are so many times as fast as those of the platform. Figures change as in a
  // platform file that says so, and measured curves are as much shorter.
  void set_speeds(double intra_node, double network);
  [[nodiscard]] double intra_speed() const { return intra_speed_; }
  [[nodiscard]] double network_speed() const { return network_speed_; }
  // With the bandwidths that are reckoned with.
  [[nodiscard]] const Node& node() const { return node_; }

  // An error if the collective is unknown or the platform cannot hold the group (more ranks than GPUs of a
  // node on one node, several nodes without a network).
  [[nodiscard]] Result<ResolvedCollective> resolve(const CollectiveGroup& group) const;

  [[nodiscard]] const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  struct Entry {
    CollectiveOp op;
    DType dtype;
    std::uint32_t n_nodes, gpus_per_node, n_ranks;
    std::shared_ptr<const detail::OnDemand<TimeCurve>> times;
    [[nodiscard]] const TimeCurve& curve() const { return *times->get(); }
  };
  struct NodePlan;
  [[nodiscard]] std::optional<ResolvedCollective> from_curves(const CollectiveGroup& group,
                                                              CollectiveOp op) const;
  [[nodiscard]] std::optional<ResolvedCollective> as_measured(const CollectiveGroup& group,
                                                              CollectiveOp op) const;
  [[nodiscard]] std::optional<ResolvedCollective> from_related(const CollectiveGroup& group) const;
  [[nodiscard]] std::optional<ResolvedCollective> from_other_systems(const CollectiveGroup& group,
                                                                     CollectiveOp op) const;
  [[nodiscard]] ResolvedCollective inside_node(const CollectiveGroup& group) const;
  [[nodiscard]] ResolvedCollective across_nodes(const CollectiveGroup& group) const;
  [[nodiscard]] std::vector<const Entry*> same_op(CollectiveOp op, DType dtype) const;

  Device device_;
  Node stated_node_, node_;
  double intra_speed_ = 1, network_speed_ = 1;
  std::vector<Entry> entries_;
  std::optional<RelatedSystems> related_;  // only where nothing was measured on one node
  std::vector<std::string> skipped_;
};

// The size to ask an all_to_all curve for when ranks send different amounts.
enum class UnevenRule : std::uint8_t {
  // As published: max over ranks of (sum of the others' shares, (n-1) x own share), where a share is what a
  // rank sends to each other one. A rank's own part is missing from this size and again from the bus factor of
  // the curve, so a balanced load comes out at (n-1)/n of what was measured.
  published,
  // The same maximum times n/(n-1): a balanced load of n shares gets the curve's size, n shares.
  corrected,
};
[[nodiscard]] Bytes uneven_all_to_all_size(std::span<const Bytes> share_of_rank,
                                           UnevenRule rule = UnevenRule::corrected);
// From the whole matrix, sent[i * n + j] = bytes that rank i sends to rank j: the largest amount that any
// rank sends to or receives from others, times n/(n-1).
[[nodiscard]] Bytes uneven_all_to_all_size(std::span<const Bytes> sent, std::uint32_t n_ranks);

}  // namespace stepcast

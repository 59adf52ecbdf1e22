// Links between nodes that several transfers use at once: groups of a job that communicate at the same time,
// and other jobs. This applies only if the platform states the tiers of its fabric (NetworkTier), or if a job
// has several pools of GPUs. Otherwise only the NICs of a node limit transfers, as the collective models
// assume.
//
// A unit of a tier (a leaf switch with its nodes, a pod) has uplinks for nodes x NICs / oversubscription.
// Ranks of a group in a unit are neighbours in its ring, so a ring leaves the unit once: every group of a
// kind sends one stream over the uplinks. An all-to-all sends over the uplinks whatever goes to ranks outside
// the unit. Streams get max-min fair rates (cost/fair_shares.h); other jobs are streams of one NIC each. The
// result is the slowdown relative to transfers that only the NICs of their nodes limit. A fabric with full
// bandwidth therefore changes nothing.
//
// The schedule determines which transfers overlap, and the rates determine how long they take. Both depend on
// each other, so the step is priced again with the new rates until they agree, at most kMostSweeps times.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/cost/fair_shares.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/priced_step.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/placement.h"

namespace stepcast {

// Largest number of evaluations of the schedule, see above.
inline constexpr std::uint32_t kMostSweeps = 4;

// How the ranks of this pool of GPUs reach the ranks of other pools.
struct PoolLinks {
  // Pools contain replicas, so data-parallel groups span them; false: they contain pipeline stages.
  bool replicas = false;
  double bandwidth_over = 1;            // NIC bandwidth of a rank / that of the slowest pool
  std::optional<BytesPerSecond> zones;  // bandwidth between zones, shared by all; nullopt: one fabric
  std::size_t zone = 0;                 // the zone of this pool
  double latency_us = 0;                // of a message from this pool to other zones
  // longest_us: longest latency between two pools. round_us: latency of one round of a ring over all pools.
  double longest_us = 0, round_us = 0;
  // Latency in microseconds of a message between two pools; 0 in the same zone.
  [[nodiscard]] double latency_us_to(const PoolLinks& other) const {
    return zone == other.zone ? 0 : std::max(latency_us, other.latency_us);
  }
  friend bool operator==(const PoolLinks&, const PoolLinks&) = default;
};

// The load on each link while the groups of a kind communicate, and the slowdowns that follow.
class NetworkSharing {
 public:
  // `placed`: placement of the ranks on nodes. `background_load`: demand of other jobs, as a share of the
  // capacity of the uplinks. `pools`: links of this pool, if the job has several. Errors: those of place().
  [[nodiscard]] static Result<NetworkSharing> of(const Network& network, const Layout& layout,
                                                 const Placement& placed, double background_load,
                                                 const std::optional<PoolLinks>& pools);

  // [GroupKind] slowdown due to other jobs only: transfer time / time limited only by the NICs.
  [[nodiscard]] const SlowdownOfKind& alone() const { return alone_; }
  // Slowdown of `kind` while `other` also communicates.
  [[nodiscard]] double beside(GroupKind kind, GroupKind other) const {
    return beside_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(other)];
  }
  // [tier] largest demand of a single kind on the uplinks / their capacity. Above 1, transfers are slowed
  // down.
  [[nodiscard]] std::vector<double> tier_loads() const;

 private:
  // Computes alone_ and beside_ from the flows and capacities.
  void solve();
  [[nodiscard]] double slowdown(std::size_t kind, std::optional<std::size_t> other) const;
  // [GroupKind] without passages: the kind does not leave a node.
  std::array<FlowClass, kGroupKindCount> flows_;
  SlowdownOfKind other_adapters_{};  // [GroupKind] slowdown due to the NICs of slower pools
  FlowClass others_{.demand = 1, .passes = {}};
  // In units of one NIC: the NICs of a node, the uplinks of each tier, then the links between zones (if
  // limited).
  std::vector<double> capacities_;
  std::size_t n_tiers_ = 0;
  SlowdownOfKind alone_{};
  std::array<SlowdownOfKind, kGroupKindCount> beside_{};
};

// [kind][other] share of the time of the transfers of `kind` during which `other` also communicates, on the
// critical stage. Kinds in different lanes of a rank can overlap: transfers in layers, transfers of weights
// and gradients, and activations between stages.
[[nodiscard]] std::array<SlowdownOfKind, kGroupKindCount> overlaps_of(const PricedStep& step,
                                                                      const StepTimes& times,
                                                                      const Layout& layout);

// [GroupKind] mean slowdown if transfers share their links with other kinds for the shares `overlaps` of
// their time.
[[nodiscard]] SlowdownOfKind shared_slowdown(const NetworkSharing& sharing,
                                             const std::array<SlowdownOfKind, kGroupKindCount>& overlaps);

// Sets the slowdown of every group that spans several nodes; others get 1.
void set_slowdowns(const SlowdownOfKind& slowdown, Placement& placement);
// Sets the latency between zones of groups that span pools. Activations between stages get it from the
// schedule instead (StepSchedule::delay_us).
void set_latencies(const PoolLinks& pools, Placement& placement);

}  // namespace stepcast

// Links between nodes that several transfers pass at once: groups of a job that communicate at the same time, and other
// jobs. Everything here holds where the platform states the tiers of its fabric (NetworkTier), or a job has several pools
// of GPUs; elsewhere nothing but a node's own adapters holds transfers up, as the collective models have it.
//
// A unit of a tier (a leaf with its nodes, a pod) has uplinks for nodes x adapters / oversubscription. Ranks of a group
// in a unit are neighbours in its ring, so that a ring leaves the unit once: what passes the uplinks is one stream for
// every group of the kind. Exchanges of tokens leave it with what goes to ranks elsewhere. Streams get max-min fair rates
// (cost/fair_shares.h), other jobs as streams of one adapter each. What counts is how much longer that makes transfers than
// the adapters of their own nodes do: a fabric that passes all that these send changes nothing.
//
// What runs beside what follows from the schedule; how long it takes follows from the rates, and both from each other: a
// fixed point of at most kMostSweeps sweeps of the schedule.
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

inline constexpr std::uint32_t kMostSweeps = 4;

// How groups that span pools of GPUs reach ranks of other pools.
struct PoolLinks {
  bool replicas = false;  // lie in different pools, and data-parallel groups span them; otherwise stages do
  double bandwidth_over = 1;            // a rank's own adapters over those of the slowest pool
  std::optional<BytesPerSecond> zones;  // of all together; nothing: pools lie on one fabric
  std::size_t zone = 0;                 // in which this pool lies
  double latency_us = 0;                // of a message from it to other zones
  double longest_us = 0,
         round_us = 0;  // the longest between two pools; of a ring over all of them, once round
  // How long a message between two pools is on its way.
  [[nodiscard]] double latency_us_to(const PoolLinks& other) const {
    return zone == other.zone ? 0 : std::max(latency_us, other.latency_us);
  }
  friend bool operator==(const PoolLinks&, const PoolLinks&) = default;
};

// Who sends how much over which links while the groups of a kind communicate.
class NetworkSharing {
 public:
  // `placed` is where the ranks lie on nodes. Errors: those of place().
  [[nodiscard]] static Result<NetworkSharing> of(const Network& network, const Layout& layout,
                                                 const Placement& placed, double background_load,
                                                 const std::optional<PoolLinks>& pools);

  // How many times as long each kind takes beside other jobs, none of its own beside it.
  [[nodiscard]] const SlowdownOfKind& alone() const { return alone_; }
  // The same of `kind` while `other` communicates, too.
  [[nodiscard]] double beside(GroupKind kind, GroupKind other) const {
    return beside_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(other)];
  }
  // [tier] of the uplinks, what the kind that asks most asks of them: above 1 it waits.
  [[nodiscard]] std::vector<double> tier_loads() const;

 private:
  void solve();
  [[nodiscard]] double slowdown(std::size_t kind, std::optional<std::size_t> other) const;
  std::array<FlowClass, kGroupKindCount> flows_;  // without passages: the kind leaves no unit
  SlowdownOfKind other_adapters_{};               // of slower pools
  FlowClass others_{.demand = 1, .passes = {}};
  // In adapters: those of a node, uplinks of each tier, then what joins zones.
  std::vector<double> capacities_;
  std::size_t n_tiers_ = 0;
  SlowdownOfKind alone_{};
  std::array<SlowdownOfKind, kGroupKindCount> beside_{};
};

// Share of the time of each kind's transfers during which each other kind communicates beside it, on the stage that
// decides. Lanes of a rank: in a layer; weights and gradients; activations between stages.
[[nodiscard]] std::array<SlowdownOfKind, kGroupKindCount> overlaps_of(const PricedStep& step,
                                                                      const StepTimes& times,
                                                                      const Layout& layout);

// How many times as long each kind takes where `overlaps` of its time others share its links.
[[nodiscard]] SlowdownOfKind shared_slowdown(const NetworkSharing& sharing,
                                             const std::array<SlowdownOfKind, kGroupKindCount>& overlaps);

// The group of `kind` gets `slowdown`.
void set_slowdowns(const SlowdownOfKind& slowdown, Placement& placement);
// Groups that span the pools get the latency between their zones; activations between stages have it in the schedule.
void set_latencies(const PoolLinks& pools, Placement& placement);

}  // namespace stepcast

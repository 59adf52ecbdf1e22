// Prices operations and transfers of a step on a platform. Every distinct one is priced once.
//
// A StepPricer caches its prices, so layouts with common shapes share them. It is not thread-safe; every
// thread needs its own (StepModel takes care of that).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "stepcast/base/recent.h"
#include "stepcast/base/result.h"
#include "stepcast/cost/collective_model.h"
#include "stepcast/cost/device_time.h"
#include "stepcast/cost/expert_exchange.h"
#include "stepcast/cost/training_kernels.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/layer_walk.h"
#include "stepcast/predict/step_assumptions.h"
#include "stepcast/workload/placement.h"
#include "stepcast/workload/step_work.h"

namespace stepcast {

// Times are under the current assumptions and the state set by price_as().
class StepPricer {
 public:
  // `platform` must outlive the pricer.
  StepPricer(const Platform& platform, const StepAssumptions& assumptions);

  // Time of one execution of an operation.
  [[nodiscard]] Estimate price(const Operation& operation) {
    return time_of(operation, kernels_.price(operation));
  }
  // The same for an operation that kernels() already priced.
  [[nodiscard]] Estimate time_of(const Operation& operation, const PricedOperation& priced) {
    return is_on_device_ ? on_device(operation, priced) : priced.time;
  }
  // Error: the platform cannot place the group, such as several nodes without a network.
  [[nodiscard]] Result<Estimate> price(const Transfer& transfer, const Placement& placement);
  // The same for any group. 0 for a group of one rank or an empty message.
  [[nodiscard]] Result<Estimate> price(CollectiveOp op, Bytes message, const GroupPlacement& place);
  // The sum of the items that lay_out() places, without launches.
  [[nodiscard]] Result<PricedList> price(const WorkList& list, const Placement& placement);
  // Prices all lists of a layer; each takes at least as long as its launches of `launch_us`. The cache key is
  // the address of the layer, so equal layers should come from a LayerWorkCache.
  [[nodiscard]] Result<PricedLayer> price(const std::shared_ptr<const LayerWork>& layer,
                                          const Placement& placement, double launch_us);
  // Number of cached layers under the current assumptions.
  [[nodiscard]] std::size_t layers_priced() const { return layers_.size(); }

  [[nodiscard]] TrainingKernels& kernels() { return kernels_; }
  [[nodiscard]] const Platform& platform() const { return *platform_; }
  // Share by which an operation slows down while a transfer of this kind overlaps it. Gathers only copy;
  // reductions also occupy SMs.
  [[nodiscard]] double overlap_slowdown(CollectiveOp op) const;
  [[nodiscard]] const StepAssumptions& assumptions() const { return assumptions_; }
  // Launches that one operation of the host counts as (PricedStep::host_share).
  [[nodiscard]] double host_share() const { return host_share_; }
  // HostOverheads::us_per_launch() of the platform; 0 without a host model.
  [[nodiscard]] double operator_us();

 private:
  friend class StepModel;
  friend class StepWorker;
  // A StepModel lends one pricer to several users in turn, each with its own assumptions. Prices are
  // remembered for the most recent assumptions.
  void assume(const StepAssumptions& assumptions);
  // Sets the state for a step.
  //
  // `exchange`: how tokens are sent to experts. If set, `scatter` and `gather` are dispatch and combine of a
  // library that sends a token once to every rank and node (expert_exchange.h); the message is the size of
  // the tokens of one rank, each counted once. nullopt: they are ordinary collectives.
  //
  // `on_device`: kernels as measured by a profiler, without the host time to launch them
  // (cost/device_time.h), and convolutions, pooling and batch norm as libraries usually run them. Used for
  // networks that are described by the operations of their blocks.
  //
  // `fp32_convolutions`: see Precision. `host_share`: time of host-only work / time of a launch.
  void price_as(const std::optional<TokenExchange>& exchange, bool on_device, bool fp32_convolutions,
                double host_share);
  // Time of an operation as a profiler measures it.
  [[nodiscard]] Estimate on_device(const Operation& operation, const PricedOperation& priced);
  // Everything that the curve of a collective depends on.
  struct GroupKey {
    CollectiveOp op;
    std::uint32_t n_ranks, n_nodes, min_ranks, groups_per_node;
    bool rail_aligned;
    double network_slowdown;
    double intra_speed, network_speed;  // of what-ifs; 1: unchanged
    bool operator==(const GroupKey&) const = default;
  };
  struct GroupKeyHash {
    std::size_t operator()(const GroupKey& key) const;
  };
  [[nodiscard]] std::optional<Estimate> price_exchange(CollectiveOp op, Bytes message,
                                                       const GroupPlacement& place) const;
  [[nodiscard]] Result<const TimeCurve*> curve(CollectiveOp op, const GroupPlacement& place);

  // Cache key of a layer: the layer and everything else that its price depends on, including the placement of
  // the groups of its transfers.
  struct LayerPlace {
    std::shared_ptr<const LayerWork> layer;  // kept alive, so that no other layer gets its address
    GroupPlacement tensor, context, expert;
    double launch_us;
    bool operator==(const LayerPlace&) const = default;
  };
  struct LayerPlaceHash {
    std::size_t operator()(const LayerPlace& place) const;
  };

  const Platform* platform_;
  StepAssumptions assumptions_;
  TrainingKernels kernels_;
  CollectiveModel collectives_;
  std::optional<DeviceTime> on_device_;  // created at first use
  std::optional<double> operator_us_;    // computed at first use
  bool is_on_device_ = false, fp32_convolutions_ = false;
  double host_share_ = 1;
  ExpertExchange exchange_rates_;
  std::optional<TokenExchange> exchange_;
  std::unordered_map<GroupKey, TimeCurve, GroupKeyHash> curves_;
  using Layers = std::unordered_map<LayerPlace, PricedLayer, LayerPlaceHash>;
  Layers layers_;
  Recent<StepAssumptions, Layers> others_{TrainingKernels::kRememberedOptions};  // under other assumptions
  std::vector<PlacedItem> items_;  // of the current list; kept to reuse its memory
};

// The group of a placement that a transfer of this kind uses.
[[nodiscard]] const GroupPlacement& group_of(GroupKind kind, const Placement& placement);

}  // namespace stepcast

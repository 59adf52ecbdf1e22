// Prices the operations and transfers of a step on a platform, each distinct one once.
//
// A StepPricer remembers what it priced: layouts that share shapes find their times in a table. It is not
// safe to use from several threads at once; give every thread its own (StepModel does).
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

class StepPricer {
 public:
  // `platform` must outlive the pricer.
  StepPricer(const Platform& platform, const StepAssumptions& assumptions);

  [[nodiscard]] Estimate price(const Operation& operation) {
    return time_of(operation, kernels_.price(operation));
  }
  // What the operation takes that kernels() priced so.
  [[nodiscard]] Estimate time_of(const Operation& operation, const PricedOperation& priced) {
    return is_on_device_ ? on_device(operation, priced) : priced.time;
  }
  // An error if the platform cannot hold the group: several nodes without a network, say.
  [[nodiscard]] Result<Estimate> price(const Transfer& transfer, const Placement& placement);
  // The same for any group; nothing for a group of one rank or a message of no bytes.
  [[nodiscard]] Result<Estimate> price(CollectiveOp op, Bytes message, const GroupPlacement& place);
  // The sum of what lay_out() places.
  [[nodiscard]] Result<PricedList> price(const WorkList& list, const Placement& placement);
  // All lists of a layer, each at least as long as its launches of `launch_us` take. Remembered for the layer
  // at hand, not for equal ones: whoever prices many layouts takes their layers from a LayerWorkCache.
  [[nodiscard]] Result<PricedLayer> price(const std::shared_ptr<const LayerWork>& layer,
                                          const Placement& placement, double launch_us);
  // Layers that were priced and not found among those remembered.
  [[nodiscard]] std::size_t layers_priced() const { return layers_.size(); }

  [[nodiscard]] TrainingKernels& kernels() { return kernels_; }
  [[nodiscard]] const Platform& platform() const { return *platform_; }
  // Share by which an operation slows down while such a transfer runs beside it. Gathers are copies; who sums takes
  // multiprocessors away.
  [[nodiscard]] double overlap_slowdown(CollectiveOp op) const;
  [[nodiscard]] const StepAssumptions& assumptions() const { return assumptions_; }
  // Launches that an operation of the host alone counts as (PricedStep::host_share).
  [[nodiscard]] double host_share() const { return host_share_; }
  // HostOverheads::us_per_launch() of the platform. 0: its host is not known.
  [[nodiscard]] double operator_us();

 private:
  friend class StepModel;
  friend class StepWorker;
  // A StepModel hands one pricer to several users, one after the other, each with its assumptions. What was priced is
  // remembered for the assumptions of late.
  void assume(const StepAssumptions& assumptions);
  // The step that is priced. `exchange`: how tokens go to their experts and back: `scatter` and `gather` of a group are
  // dispatch and combine of a library that sends a token once to every rank and node (expert_exchange.h), and their message
  // is what the tokens of one rank weigh, each once; nothing: they are collectives like others. `on_device`: as a profiler
  // shows kernels, without what the host takes to launch them (cost/device_time.h), and as libraries usually run
  // convolutions, pooling and batch norm: for networks whose blocks are told by their operations.
  // `fp32_convolutions`: as Precision has it. `host_share`: what work of the host alone takes, over a launch.
  void price_as(const std::optional<TokenExchange>& exchange, bool on_device, bool fp32_convolutions,
                double host_share);
  [[nodiscard]] Estimate on_device(const Operation& operation, const PricedOperation& priced);
  struct GroupKey {
    CollectiveOp op;
    std::uint32_t n_ranks, n_nodes, min_ranks, groups_per_node;
    bool rail_aligned;
    double network_slowdown;
    double intra_speed, network_speed;  // of what-ifs
    bool operator==(const GroupKey&) const = default;
  };
  struct GroupKeyHash {
    std::size_t operator()(const GroupKey& key) const;
  };
  [[nodiscard]] std::optional<Estimate> price_exchange(CollectiveOp op, Bytes message,
                                                       const GroupPlacement& place) const;
  [[nodiscard]] Result<const TimeCurve*> curve(CollectiveOp op, const GroupPlacement& place);

  // A layer and all that its price depends on besides: where the groups lie that its transfers join.
  struct LayerPlace {
    std::shared_ptr<const LayerWork> layer;  // kept: no other one gets its address
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
  std::optional<DeviceTime> on_device_;  // once it was asked for
  std::optional<double> operator_us_;    // the same
  bool is_on_device_ = false, fp32_convolutions_ = false;
  double host_share_ = 1;
  ExpertExchange exchange_rates_;
  std::optional<TokenExchange> exchange_;
  std::unordered_map<GroupKey, TimeCurve, GroupKeyHash> curves_;
  using Layers = std::unordered_map<LayerPlace, PricedLayer, LayerPlaceHash>;
  Layers layers_;
  Recent<StepAssumptions, Layers> others_{TrainingKernels::kRememberedOptions};  // of other assumptions
  std::vector<PlacedItem> items_;  // of the list that is priced, kept for its memory
};

// The group of a placement that a transfer joins.
[[nodiscard]] const GroupPlacement& group_of(GroupKind kind, const Placement& placement);

}  // namespace stepcast

// Prices the operations and transfers of a step on a platform, each distinct one once.
//
// A StepPricer remembers what it priced: layouts that share shapes find their times in a table. It is not
// safe to use from several threads at once; give every thread its own.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/cost/collective_model.h"
#include "stepcast/cost/training_kernels.h"
#include "stepcast/operation/kernel_class.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/step_assumptions.h"
#include "stepcast/workload/placement.h"
#include "stepcast/workload/step_work.h"

namespace stepcast {

// The time of a list of work items run in order, and where it goes.
struct PricedList {
  double time_us = 0;                                 // including what the host holds up
  double low_us = 0, high_us = 0;                     // p10 and p90 if all items err together
  double host_us = 0;                                 // of time_us: the GPU waits for launches
  double kernels = 0;                                 // launched
  double flops = 0;                                   // of matrix products and attention
  std::array<double, kKernelClassCount> class_us{};   // computation by class
  std::array<double, kGroupKindCount> exposed_us{};   // transfers that nothing hides
  std::array<double, kGroupKindCount> transfer_us{};  // all transfers
  // Of the computation, by the ground it stands on: index EstimateSource.
  std::array<double, 4> source_us{};

  PricedList& operator+=(const PricedList& other);
  [[nodiscard]] PricedList times(double count) const;
};

class StepPricer {
 public:
  // `platform` must outlive the pricer.
  StepPricer(const Platform& platform, const StepAssumptions& assumptions);

  [[nodiscard]] const Estimate& price(const Operation& operation) { return kernels_.price(operation).time; }
  // An error if the platform cannot hold the group: several nodes without a network, say.
  [[nodiscard]] Result<Estimate> price(const Transfer& transfer, const Placement& placement);
  // Items in order; a transfer `beside_next` and the item behind it run at once.
  [[nodiscard]] Result<PricedList> price(const WorkList& list, const Placement& placement);

  [[nodiscard]] TrainingKernels& kernels() { return kernels_; }
  [[nodiscard]] const Platform& platform() const { return *platform_; }
  [[nodiscard]] const StepAssumptions& assumptions() const { return assumptions_; }
  void set_assumptions(const StepAssumptions& assumptions);

 private:
  struct GroupKey {
    CollectiveOp op;
    std::uint32_t n_ranks, n_nodes, min_ranks, groups_per_node;
    bool rail_aligned;
    bool operator==(const GroupKey&) const = default;
  };
  struct GroupCurve {
    GroupKey key;
    TimeCurve curve;
    std::string how;
  };
  [[nodiscard]] Result<const TimeCurve*> curve(CollectiveOp op, const GroupPlacement& place);

  const Platform* platform_;
  StepAssumptions assumptions_;
  TrainingKernels kernels_;
  CollectiveModel collectives_;
  std::vector<std::unique_ptr<GroupCurve>> curves_;
};

// The group of a placement that a transfer joins.
[[nodiscard]] const GroupPlacement& group_of(GroupKind kind, const Placement& placement);

}  // namespace stepcast

// A step that was priced but not yet put on a time line: what every rank does, what it costs, and what ranks
// exchange.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stepcast/cost/expert_exchange.h"
#include "stepcast/predict/layer_walk.h"
#include "stepcast/predict/step_schedule.h"
#include "stepcast/workload/placement.h"
#include "stepcast/workload/step_work.h"

namespace stepcast {

// A transfer that is done `times` times; below 1 it is a share of a larger one: what a layer adds to a bucket.
struct BulkTransfer {
  Transfer transfer;
  double times = 1;
  double time_us = 0;  // of all of it; 0: nobody to exchange with
  friend bool operator==(const BulkTransfer&, const BulkTransfer&) = default;
};

// Transfers one after the other.
class BulkTransfers {
 public:
  void add(const BulkTransfer& transfer) {
    parts_[size_++] = transfer;
    time_us_ += transfer.time_us;
  }
  [[nodiscard]] std::span<const BulkTransfer> parts() const { return {parts_.data(), size_}; }
  [[nodiscard]] double time_us() const { return time_us_; }
  friend bool operator==(const BulkTransfers&, const BulkTransfers&) = default;

 private:
  std::array<BulkTransfer, 4> parts_;  // dense and expert parameters, within a copy and over the copies
  std::size_t size_ = 0;
  double time_us_ = 0;
};

// Weights and gradients of some parameters of one rank.
struct DataTransfers {
  BulkTransfers gather, reduce;
  friend bool operator==(const DataTransfers&, const DataTransfers&) = default;
};

// [GroupKind]: times as long as alone on links of its own.
using SlowdownOfKind = std::array<double, kGroupKindCount>;

// What a step's transfers meet behind the adapters of its nodes (network_sharing.h).
struct NetworkUse {
  SlowdownOfKind alone{}, slowdown{};  // beside other jobs, and beside groups of its own as well
  std::vector<double> tier_loads;      // [tier] what its busiest kind asks of the uplinks
  std::uint32_t sweeps = 0;            // of the schedule, until both agreed; 0: nothing is shared
  double residual = 0;                 // by which they still did not
  friend bool operator==(const NetworkUse&, const NetworkUse&) = default;
};

struct PricedStep {
  StepWork work;
  Placement placement;
  struct Layer : PricedLayer {
    DataTransfers transfers;
    friend bool operator==(const Layer&, const Layer&) = default;
  };
  std::vector<Layer> layers;  // [kind]
  Layer embedding, head;

  // The end of a step on one rank.
  struct Update {
    double dense_parameters = 0, expert_parameters = 0;  // trained, of all its chunks, not divided by shards
    WorkList work;                                       // clipping, update, casts: of the rank's shard
    PricedList price;
    DataTransfers whole;  // all gradients and weights at once
    friend bool operator==(const Update&, const Update&) = default;
  };
  std::vector<Update> updates;                 // the distinct ones
  std::vector<std::uint32_t> update_of_stage;  // [stage]
  [[nodiscard]] const Update& update(std::size_t stage) const { return updates[update_of_stage[stage]]; }

  // Between two stages; `put_together`: the parts that tensor-parallel ranks received.
  BulkTransfer boundary, put_together;
  BulkTransfer tied_embedding;  // gradients of the embedding that first and last stage share

  // Time of all passes over what their lists say: every rank waits for the slowest GPU of the job.
  double slowest_gpu_factor = 1;
  bool compiled = false;         // launched from compiled code
  double launch_us = 0;          // of one kernel, or of one operator of an eager stack,
  double operator_launches = 1;  // which is so many launches
  // What the host does besides launching is counted in launches of a kernel: each is this share of a launch_us.
  double host_share = 1;
  NetworkUse network;
  std::optional<TokenExchange> exchange;  // how tokens go to their experts; nothing: by collectives
  bool on_device = false;                 // kernels as a profiler shows them (StepPricer)
  bool fp32_convolutions = false;         // of a layout (Precision)
  StepSchedule schedule;
  // Works are the same if they are one.
  friend bool operator==(const PricedStep&, const PricedStep&) = default;
};

}  // namespace stepcast

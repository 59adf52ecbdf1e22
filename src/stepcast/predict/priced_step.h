// A step with prices but without a time line: the work of every rank, its costs, and the transfers between
// ranks.
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

// A transfer that is done `times` times. Below 1 it is a share of a larger transfer, such as the part of a
// bucket that a layer fills.
struct BulkTransfer {
  Transfer transfer;
  double times = 1;
  double time_us = 0;  // of all repetitions; 0: a group of one rank
  friend bool operator==(const BulkTransfer&, const BulkTransfer&) = default;
};

// Up to four transfers, one after the other.
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
  std::array<BulkTransfer, 4> parts_;  // dense and expert parameters, within and across shard groups
  std::size_t size_ = 0;
  double time_us_ = 0;
};

// Transfers of the weights (gather) and gradients (reduce) of some parameters of one rank.
struct DataTransfers {
  BulkTransfers gather, reduce;
  friend bool operator==(const DataTransfers&, const DataTransfers&) = default;
};

// [GroupKind] transfer time / time with exclusive use of the links.
using SlowdownOfKind = std::array<double, kGroupKindCount>;

// Contention of the transfers of a step beyond the NICs of its nodes (network_sharing.h).
struct NetworkUse {
  SlowdownOfKind alone{}, slowdown{};  // due to other jobs; due to other jobs and other groups of this job
  std::vector<double> tier_loads;      // [tier] largest demand of a kind / capacity of the uplinks
  std::uint32_t sweeps = 0;  // number of evaluations until rates and schedule agreed; 0: no shared links
  double residual = 0;       // largest relative difference that remained
  friend bool operator==(const NetworkUse&, const NetworkUse&) = default;
};

// The work of a step, its prices and its schedule.
struct PricedStep {
  StepWork work;
  Placement placement;
  struct Layer : PricedLayer {
    DataTransfers transfers;
    friend bool operator==(const Layer&, const Layer&) = default;
  };
  std::vector<Layer> layers;  // [kind of layer]
  Layer embedding, head;

  // The end of a step on one rank: gradient clipping, optimizer and casts.
  struct Update {
    // Trained parameters of all chunks of the rank, before sharding.
    double dense_parameters = 0, expert_parameters = 0;
    WorkList work;  // of the shard of the rank
    PricedList price;
    DataTransfers whole;  // all gradients and weights in one piece
    friend bool operator==(const Update&, const Update&) = default;
  };
  std::vector<Update> updates;                 // distinct ones; stages with equal parameters share one
  std::vector<std::uint32_t> update_of_stage;  // [stage] index into `updates`
  [[nodiscard]] const Update& update(std::size_t stage) const { return updates[update_of_stage[stage]]; }

  // Activations between two stages. `put_together`: all-gather of the parts that tensor-parallel ranks
  // received.
  BulkTransfer boundary, put_together;
  BulkTransfer tied_embedding;  // gradients of the embedding shared by first and last stage

  // Factor on the time of all passes: every rank waits for the slowest GPU of the job.
  double slowest_gpu_factor = 1;
  bool compiled = false;         // kernels are launched from compiled code
  double launch_us = 0;          // host time per kernel launch, or per operator of an eager framework
  double operator_launches = 1;  // launches that launch_us consists of
  // Other host work is counted in launches of a kernel: each takes this share of launch_us.
  double host_share = 1;
  NetworkUse network;
  std::optional<TokenExchange> exchange;  // how tokens reach their experts; nullopt: by collectives
  bool on_device = false;                 // kernels as measured by a profiler (StepPricer)
  bool fp32_convolutions = false;         // from the layout (Precision)
  StepSchedule schedule;
  // Works are compared by their address.
  friend bool operator==(const PricedStep&, const PricedStep&) = default;
};

}  // namespace stepcast

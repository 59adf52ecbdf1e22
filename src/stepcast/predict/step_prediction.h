// The prediction of a step: its time with a band, the parts of the time, throughput and utilisation.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/operation/estimate.h"
#include "stepcast/operation/kernel_class.h"
#include "stepcast/predict/priced_step.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/predict/step_schedule.h"
#include "stepcast/workload/layout.h"

namespace stepcast {

// Parts of the time of the critical stage, in microseconds. Their sum is the step time.
struct StepShares {
  std::array<double, kKernelClassCount> class_us{};  // computation by class
  std::array<double, kGroupKindCount> exposed_us{};  // [GroupKind] communication that is not hidden
  double host_us = 0;                                // the GPU waits for kernel launches
  double bubble_us = 0;                              // the pipeline stage is idle
  double optimizer_us = 0;                           // gradient clipping and update
  double fixed_us = 0;                               // between steps
  [[nodiscard]] double computation_us() const;
  [[nodiscard]] double exposed_communication_us() const;
  [[nodiscard]] double total_us() const;
  // Share of the step in which a GPU is idle or waits for transfers to other nodes. Tensor-parallel transfers
  // are excluded. `several_nodes`: whether the job has more than one node.
  [[nodiscard]] double waiting_share(bool several_nodes) const;
};

// The forecast of one step.
struct StepPrediction {
  Estimate step;
  StepShares shares;
  // The time line of every stage.
  StepTimes times;
  // [EstimateSource] share of the computation.
  std::array<double, 4> source_shares{};
  // Tokens of the global batch.
  double tokens_per_step = 0;
  std::int64_t n_gpus = 1;
  // FLOPs of GEMMs and attention, forward and backward, of all GPUs. Causal attention is counted without its
  // masked half. `hardware_flops` also contains recomputation.
  double model_flops = 0, hardware_flops = 0;
  std::optional<FlopsPerSecond> peak;  // of one GPU, dense, in the compute type of the GEMMs
  // Choices made because the layout leaves them open, and reasons for a less certain forecast.
  std::vector<std::string> notes;

  [[nodiscard]] double tokens_per_second() const;
  [[nodiscard]] double flops_per_second_per_gpu() const;  // of model_flops
  // MFU: FLOP/s of the model / peak; nullopt without a known peak.
  [[nodiscard]] std::optional<double> model_flops_utilization() const;
};

// Summarises a priced step and its evaluated time line. `prices` must be in the state in which the step was
// priced.
[[nodiscard]] StepPrediction step_prediction(const PricedStep& step, const StepTimes& times,
                                             const Layout& layout, StepPricer& prices);

// Time of all micro-batches of the step, in microseconds: without update, time between steps and
// data-parallel transfers.
[[nodiscard]] double passes_us(const StepPrediction& prediction);
// Time of the forward passes of the step, in microseconds, without update and time between steps. This is
// also the estimate for running only the forward passes.
[[nodiscard]] double forward_us(const PricedStep& step, const StepPrediction& prediction);

}  // namespace stepcast

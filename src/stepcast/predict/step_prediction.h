// What a forecast says of a step: its time with a band, where it goes, throughput.
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

// Where the time of the critical stage goes; the parts add up to the step.
struct StepShares {
  std::array<double, kKernelClassCount> class_us{};  // computation by class
  std::array<double, kGroupKindCount> exposed_us{};  // communication that nothing hides, by group
  double host_us = 0;                                // the GPU waits for launches
  double bubble_us = 0;                              // the pipeline has nothing to do
  double optimizer_us = 0;                           // clipping and update
  double fixed_us = 0;                               // between steps
  [[nodiscard]] double computation_us() const;
  [[nodiscard]] double exposed_communication_us() const;
  [[nodiscard]] double total_us() const;
  // Of the step, in which a GPU has nothing to do or transfers to other nodes: tensor-parallel groups do not.
  [[nodiscard]] double waiting_share(bool several_nodes) const;
};

struct StepPrediction {
  Estimate step;
  StepShares shares;
  StepTimes times;
  // Share of the computation that rests on measured, fitted, analytic and assumed times.
  std::array<double, 4> source_shares{};
  double tokens_per_step = 0;
  std::int64_t n_gpus = 1;
  // Products and attention of forward and backward, all GPUs; causal attention counted as it is. `hardware`
  // adds what recomputation repeats.
  double model_flops = 0, hardware_flops = 0;
  std::optional<FlopsPerSecond> peak;  // of one GPU, dense, in the type of the products
  // What was chosen where the layout leaves it open, and what makes this forecast less certain.
  std::vector<std::string> notes;

  [[nodiscard]] double tokens_per_second() const;
  [[nodiscard]] double flops_per_second_per_gpu() const;  // of the model
  [[nodiscard]] std::optional<double> model_flops_utilization() const;
};

// From the priced parts and their time line.
[[nodiscard]] StepPrediction step_prediction(const PricedStep& step, const StepTimes& times,
                                             const Layout& layout, StepPricer& prices);

// Of the step, what its micro-batches take.
[[nodiscard]] double passes_us(const StepPrediction& prediction);
// Of the step, what its forward passes take, or would take alone; without update, and what is between steps.
[[nodiscard]] double forward_us(const PricedStep& step, const StepPrediction& prediction);

}  // namespace stepcast

// The time of one training step from a description: model, layout, platform.
//
//   StepModel steps{platform};
//   STEPCAST_ASSIGN(const StepPrediction p, steps.predict(model, layout));
//   p.step.time, p.tokens_per_second(), p.shares.bubble_us, ...
//
// The operations of every distinct layer are priced once and remembered; the pipeline is evaluated by the
// recurrences of step_schedule.h. One StepModel per thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/predict/step_assumptions.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/predict/step_schedule.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/placement.h"
#include "stepcast/workload/step_work.h"
#include "stepcast/workload/transformer.h"

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
  [[nodiscard]] std::optional<double> hardware_flops_utilization() const;
};

// A step that was priced but not yet put on a time line.
struct PricedStep {
  StepWork work;
  Placement placement;
  struct Layer {
    PricedList forward, backward, weight_gradient;
  };
  std::vector<Layer> layers;  // [kind]
  PricedList embedding_forward, embedding_backward, head_forward, head_backward;
  std::vector<PricedList> optimizer;  // [stage]
  StepSchedule schedule;
};

class StepModel {
 public:
  // `platform` must outlive the model.
  explicit StepModel(const Platform& platform, const StepAssumptions& assumptions = {});
  StepModel(StepModel&&) noexcept;
  StepModel& operator=(StepModel&&) noexcept;
  ~StepModel();

  // Errors: a layout that does not fit the model or the platform.
  [[nodiscard]] Result<StepPrediction> predict(const Transformer& model, const Layout& layout);
  // The parts of it, for reports and for programs.
  [[nodiscard]] Result<PricedStep> price(const Transformer& model, const Layout& layout);
  [[nodiscard]] StepPricer& pricer();
  // From now on; what was priced is forgotten where it depends on them.
  void set_assumptions(const StepAssumptions& assumptions);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The layout with everything filled in that it leaves to the software: attention kernel by framework, date
// and device.
[[nodiscard]] Layout with_software_choices(Layout layout, const Device& device);

}  // namespace stepcast

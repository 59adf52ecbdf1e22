// The time of a kernel as it runs in a training step: KernelModel, and what a step adds to it.
//
//   TrainingKernels kernels{platform};
//   const PricedOperation& p = kernels.price(gemm({.m = 8192, .n = 4096, .k = 4096}, DType::bf16));
//   p.time.time, p.time.p10, p.time.p90, p.record
//
// Products of experts take the closed form of expert_kernels.h, and fused updates of optimizers that were not measured
// as they are asked for 60 to 90 % of the memory bandwidth. A step adds, in this order: an fp8 product where none is
// measured takes its share of the bf16 time; a
// weight gradient takes longer than the forward product of its shape; matrix work that was measured in short
// runs runs at the clock that the device sustains; factors by class of kernel, of the caller and of the
// platform's record "step_factors".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stepcast/base/on_demand.h"
#include "stepcast/base/recent.h"
#include "stepcast/cost/device_figures.h"
#include "stepcast/cost/expert_kernels.h"
#include "stepcast/cost/kernel_model.h"
#include "stepcast/cost/step_factors.h"
#include "stepcast/cost/sustained_clock.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/operation/kernel_class.h"
#include "stepcast/operation/operation.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

struct TrainingKernelOptions {
  // On the time of matrix products, of fused attention and of all other kernels.
  double gemm_factor = 1, attention_factor = 1, memory_bound_factor = 1;
  double fp8_gemm_factor = 1;            // on top, for products in fp8 and fp4
  double unmeasured_kernels_factor = 1;  // on top, for what no measurement of the device stands behind
  // On top of the others, for products of experts, the order of their tokens, and the host's work.
  double expert_factor = 1;
  // Time of a weight gradient over that of the forward product of its shape
  // (simumax_a100_pcie_efficiency.csv: median efficiency 0.738 of TN products, 0.704 of NT products that
  // accumulate into fp32).
  double weight_gradient_factor = 1.05;
  // Time of an fp8 product over that in bf16, where no fp8 product is measured: assumed.
  double fp8_gemm_time_ratio = 0.6;
  friend bool operator==(const TrainingKernelOptions&, const TrainingKernelOptions&) = default;
};

struct PricedOperation {
  Estimate time;
  KernelClass kernel_class = KernelClass::other;
  double kernels = 0;       // launched
  double matrix_flops = 0;  // of products and attention
  std::string_view record;  // name of the model record the time comes from, valid as long as the model
};

// Remembers what it priced. One per thread: price() writes to the memory of its own instance without a lock.
// A copy is cheap. It shares the KernelModel, where the work is and which is safe for all threads.
class TrainingKernels {
 public:
  explicit TrainingKernels(const Platform& platform, const TrainingKernelOptions& options = {});

  // The reference stays valid until the options change.
  [[nodiscard]] const PricedOperation& price(const Operation& operation);

  // From now on. What was priced is remembered for the options of late.
  void set_options(const TrainingKernelOptions& options);

  // Of so many options.
  static constexpr std::size_t kRememberedOptions = 16;

  [[nodiscard]] const KernelModel& model() const { return *model_; }
  // Factors of the platform's record "step_factors". Those of collectives are for the caller to apply.
  [[nodiscard]] const StepFactors& platform_factors() const { return factors_; }
  // Nothing says what clock this device sustains under load: neither a record nor products that were measured
  // on it or on a sibling.
  [[nodiscard]] bool clock_is_assumed() const { return clock_is_assumed_; }
  // Half-width in ln of what the clock of matrix work may be off where it was carried over from other devices.
  [[nodiscard]] double clock_band() const { return clock_.log_band; }
  // Records "sustained_clock" and "step_factors" that cannot be read, and why. They count as missing.
  [[nodiscard]] const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  struct OperationHash {
    std::size_t operator()(const Operation& operation) const { return hash_of(operation); }
  };
  [[nodiscard]] ExplainedEstimate in_fp8(const Operation& operation, const ExplainedEstimate& alone) const;
  // Of experts, by the record "expert_kernels"; nothing without one.
  [[nodiscard]] std::optional<ExplainedEstimate> of_experts(const Operation& operation) const;
  void hold_update(const Operation& operation, ExplainedEstimate& alone) const;
  [[nodiscard]] PricedOperation compute(const Operation& operation) const;

  std::shared_ptr<const KernelModel> model_;
  SustainedClock clock_;
  StepFactors factors_;
  std::shared_ptr<const detail::OnDemand<ExpertKernels>> experts_;  // the record, if there is one
  std::optional<KernelSibling> sibling_;
  DeviceFigures figures_;
  bool has_fp8_peak_ = false;
  bool clock_is_assumed_ = false;
  std::vector<std::string> skipped_;
  TrainingKernelOptions options_;
  using Prices = std::unordered_map<Operation, PricedOperation, OperationHash>;
  Prices priced_;
  Recent<TrainingKernelOptions, Prices> others_{kRememberedOptions};  // of other options
};

}  // namespace stepcast

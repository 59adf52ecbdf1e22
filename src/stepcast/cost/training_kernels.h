// The time of a kernel in a training step: KernelModel plus the effects of a step.
//
//   TrainingKernels kernels{platform};
//   const PricedOperation& p = kernels.price(gemm({.m = 8192, .n = 4096, .k = 4096}, DType::bf16));
//   p.time.time, p.time.p10, p.time.p90, p.record
//
// GEMMs of experts take the closed form of expert_kernels.h. Fused optimizer updates outside of the
// measurements take 60 to 90 % of the memory bandwidth. A step then applies, in this order: the fp8 ratio (an
// unmeasured fp8 GEMM takes a share of its bf16 time); the weight-gradient factor (longer than the forward
// GEMM of the same shape); the sustained clock (matrix work that was measured in short runs); factors by
// class of kernel, of the caller and of the platform's record "step_factors".
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
  // Factors on the time of GEMMs, of fused attention and of all other kernels.
  double gemm_factor = 1, attention_factor = 1, memory_bound_factor = 1;
  double fp8_gemm_factor = 1;            // additional, for GEMMs in fp8 and fp4
  double unmeasured_kernels_factor = 1;  // additional, for kernels without a measurement on the device
  // Additional, for GEMMs of experts, token permutation and the host work.
  double expert_factor = 1;
  // Time of a weight gradient over the forward GEMM of its shape (simumax_a100_pcie_efficiency.csv: median
  // efficiency 0.738 of TN GEMMs, 0.704 of NT GEMMs that accumulate into fp32).
  double weight_gradient_factor = 1.05;
  // Time of an fp8 GEMM over the same in bf16, where no fp8 GEMM is measured: assumed.
  double fp8_gemm_time_ratio = 0.6;
  friend bool operator==(const TrainingKernelOptions&, const TrainingKernelOptions&) = default;
};

// The time of an operation in a step, and the amounts that reports sum up.
struct PricedOperation {
  Estimate time;
  KernelClass kernel_class = KernelClass::other;
  double kernels = 0;       // launches
  double matrix_flops = 0;  // of GEMMs and attention
  std::string_view record;  // name of the model record behind the time, valid as long as the model
};

// Caches its prices, so it needs one instance per thread: price() writes to the cache without a lock. A copy
// is cheap and shares the thread-safe KernelModel.
class TrainingKernels {
 public:
  explicit TrainingKernels(const Platform& platform, const TrainingKernelOptions& options = {});

  // Price of an operation. The reference stays valid until the options change.
  [[nodiscard]] const PricedOperation& price(const Operation& operation);

  // Changes the options. The prices of recent options stay cached.
  void set_options(const TrainingKernelOptions& options);

  // Number of recent options with cached prices.
  static constexpr std::size_t kRememberedOptions = 16;

  [[nodiscard]] const KernelModel& model() const { return *model_; }
  // Factors of the platform's record "step_factors". The caller applies the ones for collectives.
  [[nodiscard]] const StepFactors& platform_factors() const { return factors_; }
  // Whether the clock of this device under load is unknown: there is neither a record nor a measured GEMM of
  // the device or a sibling.
  [[nodiscard]] bool clock_is_assumed() const { return clock_is_assumed_; }
  // Half-width in ln of the common error of matrix work, where the clock was taken over from other devices.
  [[nodiscard]] double clock_band() const { return clock_.log_band; }
  // Unreadable records "sustained_clock" and "step_factors", and the reason. They count as missing.
  [[nodiscard]] const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  struct OperationHash {
    std::size_t operator()(const Operation& operation) const { return hash_of(operation); }
  };
  // An fp8 GEMM from its bf16 time.
  [[nodiscard]] ExplainedEstimate in_fp8(const Operation& operation, const ExplainedEstimate& alone) const;
  // A grouped GEMM of experts by the record "expert_kernels"; none without one.
  [[nodiscard]] std::optional<ExplainedEstimate> of_experts(const Operation& operation) const;
  // Limits the time of an unmeasured fused optimizer update by the memory bandwidth.
  void hold_update(const Operation& operation, ExplainedEstimate& alone) const;
  // Price of an operation without the cache.
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

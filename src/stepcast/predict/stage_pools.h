// Pipelines with stages on several pools of GPUs. Every pool prices the whole step and contributes the prices
// of its own stages.
//
//   const std::array pools{StagePool{4, on_h100}, StagePool{8, on_a100}};   // stages 0 to 3, and 4 to 7
//   STEPCAST_ASSIGN(const StepPrediction p, predict_on_pools(model, layout, pools));
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/predict/network_sharing.h"
#include "stepcast/predict/priced_step.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/predict/step_prediction.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// Consecutive pipeline stages on GPUs of one kind.
struct StagePool {
  // One after its last stage; its first stage is the end_stage of the previous pool.
  std::uint32_t end_stage = 0;
  StepModel steps;
  PoolLinks links{};  // latency to other zones
};

// Index of the pool that contains `stage`.
[[nodiscard]] std::size_t pool_of_stage(std::span<const StagePool> pools, std::uint32_t stage);

// [pool] the whole step with the prices of this pool. All share one schedule: every stage has the times of
// its pool, and transfers between stages have the times of the slower network. Errors: those of
// StepModel::price().
[[nodiscard]] Result<std::vector<PricedStep>> price_on_pools(const Transformer& model, const Layout& layout,
                                                             std::span<const StagePool> pools);

// `parts` must come from price_on_pools(). The prediction is that of the pool with the critical stage.
[[nodiscard]] StepPrediction predict_on_pools(std::span<const PricedStep> parts, const Layout& layout,
                                              std::span<const StagePool> pools);
[[nodiscard]] Result<StepPrediction> predict_on_pools(const Transformer& model, const Layout& layout,
                                                      std::span<const StagePool> pools);

}  // namespace stepcast

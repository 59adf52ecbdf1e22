// A pipeline whose stages lie on several pools of GPUs: every pool prices all of the step, and gives its own stages.
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

struct StagePool {
  std::uint32_t end_stage = 0;  // behind its last one; the first is behind those of the pool before
  StepModel steps;
  PoolLinks links{};  // latency to other zones
};

// The position of the pool that holds `stage`.
[[nodiscard]] std::size_t pool_of_stage(std::span<const StagePool> pools, std::uint32_t stage);

// [pool] the whole step at its prices, with one schedule: of every stage the times of its pool; between stages those of
// the slower network. Errors: those of StepModel::price().
[[nodiscard]] Result<std::vector<PricedStep>> price_on_pools(const Transformer& model, const Layout& layout,
                                                             std::span<const StagePool> pools);

// `parts` from price_on_pools().
[[nodiscard]] StepPrediction predict_on_pools(std::span<const PricedStep> parts, const Layout& layout,
                                              std::span<const StagePool> pools);
[[nodiscard]] Result<StepPrediction> predict_on_pools(const Transformer& model, const Layout& layout,
                                                      std::span<const StagePool> pools);

}  // namespace stepcast

// Tests of expert layers and of the all-to-alls of their tokens, for the suites kernels and collectives.
#pragma once

#include <vector>

#include "calibrate/expert_measurements.h"
#include "lab/suite.h"

namespace stepcast {

// `moe_layer`: layers of every device and type, with rates fitted to layers of other sizes (hidden size, FFN, experts and
// top-k, in five folds). Balanced layers and layers with a power-law load are scored separately.
[[nodiscard]] Result<std::vector<TestScore>> score_expert_layers(
    const std::vector<MeasuredExpertLayer>& layers, const SuiteOptions& options,
    std::vector<Skipped>& skipped);

// `expert_exchange_tokens`, `expert_exchange_hidden_sizes`, `expert_exchange_nodes`: dispatch and combine for token counts or
// hidden sizes outside of the fit, and for two and four nodes fitted on one and eight.
[[nodiscard]] Result<std::vector<TestScore>> score_expert_exchanges(
    const std::vector<MeasuredExchange>& exchanges, const SuiteOptions& options,
    std::vector<Skipped>& skipped);

}  // namespace stepcast

// Fits the closed forms of cost/expert_kernels.h and cost/expert_exchange.h.
#pragma once

#include <span>

#include "stepcast/cost/expert_exchange.h"
#include "stepcast/cost/expert_kernels.h"
#include "stepcast/platform/platform.h"

#include "calibrate/expert_measurements.h"

namespace stepcast {

// The time of a measured layer by the closed form.
[[nodiscard]] double predicted_layer_us(const ExpertRates& rates, const DeviceFigures& device,
                                        const MeasuredExpertLayer& layer);
[[nodiscard]] ExpertBand layer_band(const ExpertRates& rates, const MeasuredExpertLayer& layer);
// Fits layers of one device and type by least mean |ln(predicted / measured)|, from balanced layers only if there are any.
// Trees learn the residual over all layers if XGBoost is available. One band is for held-out models, one for single layers
// of known models. `rows` must not be empty.
[[nodiscard]] ExpertRates fit_expert_rates(std::span<const MeasuredExpertLayer* const> rows,
                                           const Device& device, DType dtype);

// The time of a measured all-to-all by the closed form; nodes have eight GPUs. `node` gives the figures of links and
// network.
[[nodiscard]] double predicted_exchange_us(const ExchangeRates& rates, const Node& node,
                                           const MeasuredExchange& exchange);
[[nodiscard]] ExchangeRates fit_exchange_rates(std::span<const MeasuredExchange* const> rows,
                                               const Device& device, const Node& node, bool combine);
// Devices measured only inside one node get the network rates of those measured on several.
void borrow_network_rates(std::span<ExchangeRates> measured);

}  // namespace stepcast

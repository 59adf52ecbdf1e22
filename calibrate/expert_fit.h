// Fits the closed forms of cost/expert_kernels.h and cost/expert_exchange.h.
#pragma once

#include <span>

#include "stepcast/cost/expert_exchange.h"
#include "stepcast/cost/expert_kernels.h"
#include "stepcast/platform/platform.h"

#include "calibrate/expert_measurements.h"

namespace stepcast {

// What the form says of a measured layer.
[[nodiscard]] double predicted_layer_us(const ExpertRates& rates, const DeviceFigures& device,
                                        const MeasuredExpertLayer& layer);
[[nodiscard]] ExpertBand layer_band(const ExpertRates& rates, const MeasuredExpertLayer& layer);
// To layers of one device and type: least mean |ln(predicted / measured)|, balanced layers alone where there are some.
// What the form leaves of all layers is learned by trees, where XGBoost is there. One band is that of models that were held
// out, one of single layers of models that were not. `rows` must not be empty.
[[nodiscard]] ExpertRates fit_expert_rates(std::span<const MeasuredExpertLayer* const> rows,
                                           const Device& device, DType dtype);

// Of measured exchanges, which are on nodes of eight. `node`: says what links and network can do.
[[nodiscard]] double predicted_exchange_us(const ExchangeRates& rates, const Node& node,
                                           const MeasuredExchange& exchange);
[[nodiscard]] ExchangeRates fit_exchange_rates(std::span<const MeasuredExchange* const> rows,
                                               const Device& device, const Node& node, bool combine);
// Devices that were measured inside one node alone take what crosses the network from those that were measured on several.
void borrow_network_rates(std::span<ExchangeRates> measured);

}  // namespace stepcast

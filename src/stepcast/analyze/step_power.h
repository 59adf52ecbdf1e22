// What the nodes of a forecast draw, from its own breakdown (cost/node_power.h).
#pragma once

#include <optional>

#include "stepcast/analyze/forecast.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// Into forecast.power, of the critical class of ranks; nothing for a device that states no power limit. Before
// add_training(), whose energy follows from it. `limit_W`: of each GPU, which the times already are under.
void add_power(Forecast& forecast, const Platform& platform, std::optional<double> limit_W = {});

}  // namespace stepcast

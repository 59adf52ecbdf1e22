// Shardings of embedding tables side by side, as text and as JSON (docs/json.md).
#pragma once

#include <string>

#include "stepcast/plan/sharding_comparison.h"

namespace stepcast {

[[nodiscard]] std::string sharding_text(const ShardingComparison& all);
[[nodiscard]] std::string sharding_json(const ShardingComparison& all);

}  // namespace stepcast

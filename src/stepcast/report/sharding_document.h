// Shardings of embedding tables side by side: how long each makes the step, and what every rank carries.
#pragma once

#include <string>

#include "stepcast/recommend/sharding_comparison.h"
#include "stepcast/report/document.h"

namespace stepcast {

// `platform` as it was asked for.
[[nodiscard]] ReportDocument sharding_document(const ShardingComparison& answer, const std::string& platform);
[[nodiscard]] inline std::string sharding_text(const ShardingComparison& answer) {
  return report_text(sharding_document(answer, {}));
}
// stepcast.shard/1 (docs/schemas/shard.json, docs/json.md).
[[nodiscard]] std::string sharding_json(const ShardingComparison& answer);
[[nodiscard]] std::string sharding_schema();

}  // namespace stepcast

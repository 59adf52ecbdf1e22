// Compares shardings of embedding tables: the step time with each of them, and the load of every rank.
#pragma once

#include <string>

#include "stepcast/recommend/sharding_comparison.h"
#include "stepcast/report/document.h"

namespace stepcast {

// The comparison as a document, which also needs the platform as it was given, and as text for a terminal.
[[nodiscard]] ReportDocument sharding_document(const ShardingComparison& answer, const std::string& platform);
[[nodiscard]] inline std::string sharding_text(const ShardingComparison& answer) {
  return report_text(sharding_document(answer, {}));
}
// The comparison as JSON, stepcast.shard/1 (docs/schemas/shard.json, docs/json.md), and its schema.
[[nodiscard]] std::string sharding_json(const ShardingComparison& answer);
[[nodiscard]] std::string sharding_schema();

}  // namespace stepcast

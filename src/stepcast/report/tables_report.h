// Embedding tables and the indices that batches look up in them, for people and for scripts.
#pragma once

#include <string>
#include <vector>

#include "stepcast/base/json_writer.h"
#include "stepcast/describe/measured_indices.h"
#include "stepcast/workload/dlrm.h"

namespace stepcast {

[[nodiscard]] std::string tables_text(const std::string& file, const std::vector<EmbeddingTable>& tables);
// `data_set` is all files together; null where there is one.
[[nodiscard]] std::string indices_text(const MeasuredIndices& measured, const MeasuredIndices* data_set,
                                       std::int64_t batch_samples);

// One object each.
void tables_json(const std::string& file, const std::vector<EmbeddingTable>& tables, JsonWriter& json);
void indices_json(const MeasuredIndices& measured, const MeasuredIndices* data_set,
                  std::int64_t batch_samples, JsonWriter& json);

}  // namespace stepcast

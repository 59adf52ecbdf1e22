// What is known by name: models and platforms, and one platform with the source of every figure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/describe/presets.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/document.h"

namespace stepcast {

struct ModelAnswer {
  std::string name;
  std::vector<std::string> aliases;
  std::int64_t parameters = 0, active_parameters = 0, n_layers = 0, hidden_size = 0, n_heads = 0,
               n_kv_heads = 0, vocab_size = 0, n_experts = 0, experts_per_token = 0, longest_sequence = 0;
};
struct ModelsAnswer {
  std::vector<ModelAnswer> models;
};
[[nodiscard]] ModelsAnswer models_answer(const std::vector<const Preset*>& presets);
// Schema stepcast.models/1.
[[nodiscard]] std::string models_json(const ModelsAnswer& models);
[[nodiscard]] std::string models_schema();
[[nodiscard]] ReportDocument models_document(const ModelsAnswer& models);

// Schema stepcast.platforms/1.
[[nodiscard]] std::string platforms_json(const PlatformListings& platforms);
[[nodiscard]] std::string platforms_schema();
[[nodiscard]] ReportDocument platforms_document(const PlatformListings& platforms);

// Its JSON is the platform file (platform_json).
[[nodiscard]] ReportDocument platform_document(const Platform& platform);

}  // namespace stepcast

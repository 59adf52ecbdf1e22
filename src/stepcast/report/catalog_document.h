// What is known by name: models and platforms, and one platform with the source of every figure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/base/fields.h"
#include "stepcast/describe/presets.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/document.h"

namespace stepcast {

struct ModelAnswer {
  STEPCAST_FIELDS(ModelAnswer);
  STEPCAST_FIELD(std::string, name, "");
  STEPCAST_FIELD(std::vector<std::string>, aliases, "");
  STEPCAST_FIELD(std::int64_t, parameters, "");
  STEPCAST_FIELD(std::int64_t, active_parameters, "that a token meets");
  STEPCAST_FIELD(std::int64_t, n_layers, "");
  STEPCAST_FIELD(std::int64_t, hidden_size, "");
  STEPCAST_FIELD(std::int64_t, n_heads, "");
  STEPCAST_FIELD(std::int64_t, n_kv_heads, "");
  STEPCAST_FIELD(std::int64_t, vocab_size, "");
  STEPCAST_FIELD(std::int64_t, n_experts, "0: none");
  std::int64_t experts_per_token = 0, longest_sequence = 0;
};
struct ModelsAnswer {
  STEPCAST_FIELDS(ModelsAnswer);
  STEPCAST_FIELD(std::vector<ModelAnswer>, models, "");
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

// What is known by name: models and platforms, and one platform with the source of every figure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/base/fields.h"
#include "stepcast/formats/presets.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/document.h"
#include "stepcast/report/fields/field_list.h"

namespace stepcast {

struct ModelAnswer {
  STEPCAST_FIELDS(ModelAnswer);
  STEPCAST_COLUMN(std::string, name, "", "model<");
  STEPCAST_COLUMN(std::vector<std::string>, aliases, "", TableColumn{"also called<"}.at(1));
  STEPCAST_COLUMN(std::int64_t, parameters, "", "parameters\nin billions", 2, 1e-9);
  STEPCAST_FIELD(std::int64_t, active_parameters, "number of parameters that a token activates");
  STEPCAST_COMPUTED_COLUMN(x.n_experts > 0 ? std::optional{x.active_parameters} : std::nullopt,
                           "of them\nper token", 2, 1e-9, "")
  STEPCAST_COLUMN(std::int64_t, n_layers, "", TableColumn::plain("layers"));
  STEPCAST_COLUMN(std::int64_t, hidden_size, "", TableColumn::plain("hidden"));
  STEPCAST_FIELD(std::int64_t, n_heads, "");
  STEPCAST_FIELD(std::int64_t, n_kv_heads, "");
  STEPCAST_FIELD(std::int64_t, vocab_size, "");
  STEPCAST_FIELD(std::int64_t, n_experts, "number of experts; 0: none");
  STEPCAST_COMPUTED_COLUMN(std::to_string(x.n_heads) + " / " + std::to_string(x.n_kv_heads), "heads / kv")
  STEPCAST_COMPUTED_COLUMN(x.n_experts > 0
                               ? std::to_string(x.experts_per_token) + " of " + std::to_string(x.n_experts)
                               : "",
                           "experts")
  STEPCAST_COMPUTED_COLUMN(x.longest_sequence, TableColumn::or_blank("positions"))
  std::int64_t experts_per_token = 0, longest_sequence = 0;
};
struct ModelsAnswer {
  STEPCAST_FIELDS(ModelsAnswer);
  STEPCAST_FIELD(std::vector<ModelAnswer>, models, "");
};
[[nodiscard]] ModelsAnswer models_answer(const std::vector<const Preset*>& presets);
// Schema stepcast.models/1.
[[nodiscard]] std::string models_json(const ModelsAnswer& answer);
[[nodiscard]] std::string models_schema();
// `others`: lines about models that have names alone.
[[nodiscard]] ReportDocument models_document(const ModelsAnswer& models,
                                             const std::vector<std::string>& others);

// Schema stepcast.platforms/1.
[[nodiscard]] std::string platforms_json(const PlatformListings& answer);
[[nodiscard]] std::string platforms_schema();
[[nodiscard]] ReportDocument platforms_document(const PlatformListings& platforms);

// Its JSON is the platform file (platform_json).
[[nodiscard]] ReportDocument platform_document(const Platform& platform);

}  // namespace stepcast

// Lists models and platforms that are known by name, and shows one platform with the source of each figure.
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

// A row of `stepcast models`. Columns with a heading appear in the table, all members with a key in the JSON.
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
  // Only for the table.
  std::int64_t experts_per_token = 0, longest_sequence = 0;
};
struct ModelsAnswer {
  STEPCAST_FIELDS(ModelsAnswer);
  STEPCAST_FIELD(std::vector<ModelAnswer>, models, "");
};
// The rows for these presets, in their order.
[[nodiscard]] ModelsAnswer models_answer(const std::vector<const Preset*>& presets);
// JSON and its schema, stepcast.models/1.
[[nodiscard]] std::string models_json(const ModelsAnswer& answer);
[[nodiscard]] std::string models_schema();
// The table for a terminal or a page. `others`: lines about models for which only the name is known.
[[nodiscard]] ReportDocument models_document(const ModelsAnswer& models,
                                             const std::vector<std::string>& others);

// JSON, its schema stepcast.platforms/1, and the table of all platforms.
[[nodiscard]] std::string platforms_json(const PlatformListings& answer);
[[nodiscard]] std::string platforms_schema();
[[nodiscard]] ReportDocument platforms_document(const PlatformListings& platforms);

// All figures of one platform, each with its source. The JSON of a platform is its file (platform_json).
[[nodiscard]] ReportDocument platform_document(const Platform& platform);

}  // namespace stepcast

// Models with built-in names, from public model cards and papers.
//
//   STEPCAST_ASSIGN(const Transformer model, find_preset("llama-3-70b"));
//
// The data is in tables/presets.csv, and for config.json files in tables/config_presets.json;
// docs/reference/presets.md lists all.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

// A built-in model.
struct Preset {
  Transformer model;
  // The published number of parameters: exact ("8,030,261,248"), rounded ("18.4B"), or only a name ("~350M").
  std::string published_parameters;
  std::vector<std::string> aliases;
  bool of_config = false;  // from a published config.json
};

// All presets in table order. Built on the first call.
[[nodiscard]] std::span<const Preset> presets();

// The preset with this name or alias; case, blanks, hyphens and underscores are ignored. Errors: an unknown name, with
// suggestions. `vision`: options for models with an image tower. `notes`: receives the notes of reading a config.json.
[[nodiscard]] Result<Transformer> find_preset(std::string_view name, const VisionSettings& vision = {},
                                              std::vector<std::string>* notes = nullptr);

// The preset for a name on a hub, a folder, or a component of torchtune:
// "meta-llama/Meta-Llama-3.1-8B-Instruct", "torchtune.models.llama3_1.lora_llama3_1_8b".
[[nodiscard]] std::optional<std::string> preset_of_hub_name(std::string_view hub);

}  // namespace stepcast

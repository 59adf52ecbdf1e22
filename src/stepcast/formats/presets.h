// Models that are known by name, from public model cards and papers.
//
//   STEPCAST_ASSIGN(const Transformer model, find_preset("llama-3-70b"));
//
// The rows are in tables/presets.csv, and in tables/config_presets.json as config.json; docs/reference/presets.md shows them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

struct Preset {
  Transformer model;
  // Its size as published: all digits ("8,030,261,248"), some ("18.4B"), or a round name that is no count
  // ("~350M").
  std::string published_parameters;
  std::vector<std::string> aliases;
  bool of_config = false;  // read from the file that was published
};

// All, in the order of the table.
[[nodiscard]] std::span<const Preset> presets();

// By name or alias; case, blanks, hyphens and underscores do not count. An error names the nearest known one. `vision` is
// for those with a tower for images, `notes` gets what was said when a config.json was read.
[[nodiscard]] Result<Transformer> find_preset(std::string_view name, const VisionSettings& vision = {},
                                              std::vector<std::string>* notes = nullptr);

// The preset that a name at a hub, a folder or a component of torchtune stands for: "meta-llama/Meta-Llama-3.1-8B-Instruct",
// "torchtune.models.llama3_1.lora_llama3_1_8b".
[[nodiscard]] std::optional<std::string> preset_of_hub_name(std::string_view hub);

}  // namespace stepcast

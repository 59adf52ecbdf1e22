// Published recommendation models by name. Sizes are those of the public repositories of MLCommons, NVIDIA
// and TorchRec, and of the papers about the multi-GPU model. docs/dlrm.md lists what is assumed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/recommend/dlrm.h"

namespace stepcast {

// The model with this name; empty for an unknown name. `dlrm-multi-gpu` has no tables, they come from a table
// file.
[[nodiscard]] std::optional<Dlrm> dlrm_preset(std::string_view name);
// The names of all presets.
[[nodiscard]] std::vector<std::string> dlrm_names();

}  // namespace stepcast

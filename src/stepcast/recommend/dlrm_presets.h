// Published recommendation models by name. Sizes as in the public repositories of MLCommons, NVIDIA and TorchRec and
// in the papers of the multi-GPU model; docs/dlrm.md says what of each is assumed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/recommend/dlrm.h"

namespace stepcast {

// Nothing for another name. `dlrm-multi-gpu` has no tables: a table file brings them.
[[nodiscard]] std::optional<Dlrm> dlrm_preset(std::string_view name);
[[nodiscard]] std::vector<std::string> dlrm_names();

}  // namespace stepcast

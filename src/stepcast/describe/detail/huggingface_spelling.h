// Keys of config.json under the names that most families give them.
#pragma once

#include <string>
#include <vector>

#include "stepcast/base/json_value.h"

namespace stepcast::detail {

// `config` with its language model as `text_config`, whatever that is called, and, of families that rows describe, with
// sizes under their usual names. What is left out goes into `notes`.
[[nodiscard]] JsonValue with_usual_keys(const JsonValue& config, std::vector<std::string>& notes);

}  // namespace stepcast::detail

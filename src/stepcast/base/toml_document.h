// Parses TOML into the tree type of JSON documents, with line numbers.
#pragma once

#include <string>
#include <string_view>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast {

// `name` denotes the text in errors. Letters beyond ASCII become question marks. Errors: invalid TOML, dates
// and times, numbers that are not finite, more than 1 MiB, more than 32 levels.
[[nodiscard]] Result<JsonValue> parse_toml(std::string_view text, const std::string& name);

}  // namespace stepcast

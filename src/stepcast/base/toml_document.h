// A TOML document as the tree that JSON documents become, with its lines.
#pragma once

#include <string>
#include <string_view>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast {

// Dates and times become texts; letters beyond ASCII become question marks. `name` stands for the text in
// errors. Numbers that are not finite, documents above 1 MiB and nesting deeper than 32 levels are errors.
[[nodiscard]] Result<JsonValue> parse_toml(std::string_view text, const std::string& name);

}  // namespace stepcast

// Which training framework a config is of: what its keys show.
#pragma once

#include <string>
#include <string_view>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"
#include "stepcast/describe/detail/framework_rows.h"

namespace stepcast::detail {

// The value at a path ("tokens.micro_batch_size"); null if it is not there.
[[nodiscard]] const JsonValue* config_value(const JsonValue& root, std::string_view path);

// Errors name the file it looks like, what to do with that, or the keys that are missing.
[[nodiscard]] Result<const ConfigFramework*> framework_of(const JsonValue& root, const std::string& file);

}  // namespace stepcast::detail

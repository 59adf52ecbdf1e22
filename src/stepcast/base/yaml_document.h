// Parses YAML into the tree type of JSON documents, with line numbers.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast {

// Parses the first document of a YAML stream, with yaml-cpp. Plain scalars become null, truth values (those of
// YAML 1.1, as in PyYAML) and numbers. Anchors are expanded where they are used, and `<<` merges mappings. If
// a key occurs twice in a mapping, the last value applies. `name` denotes the text in errors, which give the
// line. Errors: invalid YAML, more than 1 MiB, more than 32 levels, more than 100,000 values after expansion.
[[nodiscard]] Result<JsonValue> parse_yaml(std::string_view text, const std::string& name);

// The leaves of a tree by path, "model.num_layers" -> "32". Values are texts: true, false, null, and numbers
// as the shortest text that reads back. Lists are single values, written as JSON.
using YamlScalars = std::map<std::string, std::string, std::less<>>;
[[nodiscard]] YamlScalars yaml_scalars(const JsonValue& document);

}  // namespace stepcast

// A YAML document as the tree that JSON documents become, with its lines.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"

namespace stepcast {

// The first document of a stream, read by yaml-cpp. Plain words become null, truth values (YAML 1.1's, as PyYAML has
// them) and numbers; anchors are put in where they are named, `<<` merges. `name` stands for the text in errors, which
// give the line. Above 1 MiB of text, 32 levels or 100,000 values (aliases counted where they stand) is an error. Of a
// key that stands twice in a mapping the last holds.
[[nodiscard]] Result<JsonValue> parse_yaml(std::string_view text, const std::string& name);

// The values of a tree by their path, "model.num_layers" -> "32", as texts: true, false, null, numbers as the shortest
// that reads back; lists are values, as JSON.
using YamlScalars = std::map<std::string, std::string, std::less<>>;
[[nodiscard]] YamlScalars yaml_scalars(const JsonValue& document);

}  // namespace stepcast

// Checks a JSON document against a JSON Schema, as far as docs/schemas/ uses it: type, const, enum, properties,
// required, additionalProperties, items, anyOf, minimum, maximum, $ref to #/$defs/NAME or to another file of
// docs/schemas/. A keyword that is not among these (and is no annotation) is an error of the schema, so that
// nothing looks checked that is not.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::fixtures {

// One line per violation, "ranks[2].rank: found text, expected integer"; empty if the document follows the
// schema. What is wrong with the schema itself is a violation, too. `folder` holds files that it refers to.
[[nodiscard]] std::vector<std::string> violations(std::string_view schema, std::string_view document,
                                                  const std::filesystem::path& folder = {});

}  // namespace stepcast::fixtures

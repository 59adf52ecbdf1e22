// Settings as other software prints them: Python's dicts and YAML.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace stepcast::detail {

// A Python dict as JSON: quotes, True, False, None and tuples. JSON stays as it is.
[[nodiscard]] std::string python_to_json(std::string_view text);

// The scalars of a YAML document by their path, "model.num_layers" -> "32"; lists in brackets stay as they are written.
// What is no mapping of scalars (anchors, texts over several lines) is passed over. Of two with one path the last holds.
[[nodiscard]] std::map<std::string, std::string, std::less<>> yaml_scalars(std::string_view text);

}  // namespace stepcast::detail

// Where the data that ships with stepcast lies: targets.csv, published.csv.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace stepcast {

// A file of the folder data/ beside the installed tool, in the source tree of this build or where it is
// installed, in this order; nothing if it is nowhere.
[[nodiscard]] std::optional<std::filesystem::path> shipped_data_file(std::string_view name);

}  // namespace stepcast

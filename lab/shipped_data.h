// Where the tables that suites are held to lie: targets.csv, published.csv.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace stepcast {

// A file of the folder data/ in the source tree of this build; nothing if it is not there.
[[nodiscard]] std::optional<std::filesystem::path> shipped_data_file(std::string_view name);

}  // namespace stepcast

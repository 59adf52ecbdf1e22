// Location of the tables that suites compare with: targets.csv, published.csv.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace stepcast {

// Path of a file in the folder data/ of the source tree of this build; nullopt if it does not exist.
[[nodiscard]] std::optional<std::filesystem::path> shipped_data_file(std::string_view name);

}  // namespace stepcast

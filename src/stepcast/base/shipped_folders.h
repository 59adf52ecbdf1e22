// Where files that ship with the program lie once it is installed.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace stepcast {

// Folders that `name` ("platforms", "data") may be, the first to be looked at first: share/stepcast beside the folder of
// the program, and share/stepcast beside a shared library that this code is part of (the Python extension, whose program
// is the interpreter). They need not exist.
[[nodiscard]] std::vector<std::filesystem::path> shipped_folders(std::string_view name);

}  // namespace stepcast

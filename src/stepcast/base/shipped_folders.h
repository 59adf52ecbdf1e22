// Finds the installed data files of the program.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace stepcast {

// Folders in which `name` ("platforms", "data") may be, in order of preference: share/stepcast next to the
// program's bin folder, then share/stepcast next to the shared library that contains this code (the Python
// extension, for which the program is the interpreter). The folders need not exist.
[[nodiscard]] std::vector<std::filesystem::path> shipped_folders(std::string_view name);

}  // namespace stepcast

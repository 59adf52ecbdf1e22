// The trace sets of a folder of measured data, for suites that go over all of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// `data` itself and the folders below it, in order of their names; of a file the file alone. An error: it does
// not exist or cannot be listed.
[[nodiscard]] Result<std::vector<std::filesystem::path>> folders_of(const std::filesystem::path& data);

// How reports call what lies at `path` in `data`: without endings that only say the format.
[[nodiscard]] std::string relative_name(const std::filesystem::path& path, const std::filesystem::path& data);

}  // namespace stepcast

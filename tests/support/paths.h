// Where the tests find what they read and run.
#pragma once

#include <filesystem>

namespace stepcast::test {

// The root of the checkout, for files that ship with the project: source_dir() / "platforms".
[[nodiscard]] std::filesystem::path source_dir();

// The `stepcast` command line tool of this build.
[[nodiscard]] std::filesystem::path stepcast_executable();

}  // namespace stepcast::test

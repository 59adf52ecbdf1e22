// Built-in data tables: the files in src/stepcast/*/tables/, which the build compiles into the library.
#pragma once

#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// The text of a file by name, "presets.csv"; valid until the program ends. Empty if there is no such file.
[[nodiscard]] std::string_view shipped_table(std::string_view file);
// The texts of all files with names that end with `ending`, "_presets.json".
[[nodiscard]] std::vector<std::string_view> shipped_tables(std::string_view ending);

// The value read from a built-in text. An error there is a bug of the program, so it throws std::logic_error.
// Tests read all tables.
template <class T>
[[nodiscard]] T as_shipped(Result<T> read) {
  if (!read) throw std::logic_error{read.error().message()};
  return *std::move(read);
}

}  // namespace stepcast

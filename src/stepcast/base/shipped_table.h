// Tables that are data: the files of src/stepcast/*/tables/, whose texts the build puts into the library.
#pragma once

#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

// The text of a file by its name, "presets.csv", for as long as the program runs; empty if there is none.
[[nodiscard]] std::string_view shipped_table(std::string_view file);
// The texts of all files whose names end so, "_presets.json".
[[nodiscard]] std::vector<std::string_view> shipped_tables(std::string_view ending);

// What was read from such a text. They are ours: an error is one of the program, and tests read all of them.
template <class T>
[[nodiscard]] T as_shipped(Result<T> read) {
  if (!read) throw std::logic_error{read.error().message()};
  return *std::move(read);
}

}  // namespace stepcast

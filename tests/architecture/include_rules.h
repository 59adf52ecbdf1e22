// Which room may include which: the house plan as a table, and a check of include lines against it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepcast::test {

struct Violation {
  std::string file;
  int line = 0;
  std::string rule;  // what is wrong, in one sentence

  [[nodiscard]] std::string message() const;
};

// Checks the include lines of one source. `file` is its path from the root of the checkout with forward
// slashes ("src/stepcast/trace/kineto.cpp", "apps/stepcast/main.cpp") and `text` what it holds.
[[nodiscard]] std::vector<Violation> check_includes(std::string_view file, std::string_view text);

}  // namespace stepcast::test

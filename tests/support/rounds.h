// How many cases a test of drawn cases draws: few in `./dev test`, all in `./dev nightly`, which sets STEPCAST_NIGHTLY.
//
//   for (int i = 0; i < test::rounds(50, 200); ++i) { ... }
#pragma once

#include <cstdlib>

namespace stepcast::test {

[[nodiscard]] inline int rounds(int usual, int nightly) {
  return std::getenv("STEPCAST_NIGHTLY") == nullptr ? usual : nightly;
}

}  // namespace stepcast::test

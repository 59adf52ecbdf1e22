#include "tests/support/paths.h"

namespace stepcast::test {

std::filesystem::path source_dir() { return STEPCAST_TEST_SOURCE_DIR; }

std::filesystem::path stepcast_executable() {
  return std::filesystem::path{STEPCAST_TEST_BINARY_DIR} / "stepcast";
}

}  // namespace stepcast::test

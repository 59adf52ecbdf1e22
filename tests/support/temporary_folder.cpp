#include "tests/support/temporary_folder.h"

#include <string>
#include <system_error>

#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX's

namespace stepcast::test {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::path{::testing::TempDir()} / "stepcast_XXXXXX").string();
  const char* made = ::mkdtemp(pattern.data());
  EXPECT_NE(made, nullptr) << "no folder can be made like " << pattern;
  if (made != nullptr) path_ = made;
}

TemporaryFolder::~TemporaryFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace stepcast::test

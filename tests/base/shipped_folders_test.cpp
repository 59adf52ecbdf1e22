#include "stepcast/base/shipped_folders.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace stepcast::shipped_folders_test {
namespace {

// A program that holds the library itself has one place for them, beside its own folder.
TEST(ShippedFolders, LieBesideTheFolderOfTheProgram) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const auto folders = shipped_folders("platforms");
  ASSERT_EQ(folders.size(), 1U);
  EXPECT_EQ(folders.front(), program.parent_path().parent_path() / "share" / "stepcast" / "platforms");
}

}  // namespace
}  // namespace stepcast::shipped_folders_test

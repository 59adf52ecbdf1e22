#include "stepcast/base/file.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace stepcast::file_test {
namespace {

TEST(CsvFiles, AreThoseOfAFolderAndBelowItByName) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "a" / "folder.csv");
  for (const char* name : {"b.csv", "a/c.csv.gz", "a/d.json", "a.gz"}) std::ofstream{folder.path() / name};
  EXPECT_THAT(csv_files_in(folder.path()), ::testing::ElementsAre(folder.path() / "b.csv"));
  EXPECT_THAT(csv_files_in(folder.path(), /*below=*/true),
              ::testing::ElementsAre(folder.path() / "a" / "c.csv.gz", folder.path() / "b.csv"));
  EXPECT_THAT(csv_files_in(folder.path() / "none"), ::testing::IsEmpty());
}

}  // namespace
}  // namespace stepcast::file_test

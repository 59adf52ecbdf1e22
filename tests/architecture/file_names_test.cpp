// No two rooms hold files with the same stem: `x.h` of one room and `x.cpp` of another mislead readers and tools.

#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/paths.h"

namespace stepcast::test::file_names_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The room of "src/stepcast/trace/detail/x.h" is "trace", that of "lab/x.cpp" is "lab".
std::string room_of(const fs::path& file) {
  auto part = file.begin();
  if (*part != "src") return part->string();
  return std::next(part, 2)->string();
}

// "fields: base, report" for every stem (file name without extension) that sources and headers of several rooms have.
std::vector<std::string> shared_stems(const std::vector<fs::path>& files) {
  std::map<std::string, std::set<std::string>> rooms;
  for (const fs::path& file : files) rooms[file.stem().string()].insert(room_of(file));
  std::vector<std::string> shared;
  for (const auto& [stem, names] : rooms) {
    if (names.size() < 2) continue;
    std::string line;
    for (const std::string& name : names) line += fmt::format("{}{}", line.empty() ? "" : ", ", name);
    shared.push_back(fmt::format("{}: {}", stem, line));
  }
  return shared;
}

TEST(FileNames, AreThoseOfOneRoom) {
  std::vector<fs::path> files;
  for (const char* folder : {"src/stepcast", "calibrate", "lab"}) {
    for (const auto& entry : fs::recursive_directory_iterator(source_dir() / folder)) {
      const fs::path extension = entry.path().extension();
      if (extension == ".h" || extension == ".cpp")
        files.push_back(entry.path().lexically_relative(source_dir()));
    }
  }
  ASSERT_FALSE(files.empty());
  EXPECT_THAT(shared_stems(files), IsEmpty()) << "rename one file of each line";
}

TEST(FileNames, OfTwoRoomsAreNamed) {
  EXPECT_THAT(shared_stems({"src/stepcast/base/fields.h", "src/stepcast/report/fields/fields.cpp",
                            "src/stepcast/base/id.h", "src/stepcast/base/detail/id.cpp", "lab/suite.h",
                            "lab/program/suite.cpp"}),
              ElementsAre("fields: base, report"));
}

}  // namespace
}  // namespace stepcast::test::file_names_test

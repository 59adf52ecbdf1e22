// What the pages for newcomers say of the tool is what the tool says.

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"

#include "tests/support/command.h"
#include "tests/support/paths.h"

namespace stepcast::test::readme_test {
namespace {

using ::testing::HasSubstr;

std::string page(const std::string& name) {
  const Result<std::string> text = read_file(source_dir() / name);
  EXPECT_TRUE(text.ok()) << name;
  return text.ok() ? *text : std::string{};
}

// The first command of the page prints what stands below it, whatever the numbers are today.
TEST(Readme, ShowsTheFirstForecastInItsForm) {
  const CommandResult result =
      run_command({stepcast_executable().string(), "predict", "--model", "llama-3-8b", "--gpus", "8"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string text = page("README.md");
  std::istringstream lines{result.out};
  for (std::string line; std::getline(lines, line);) {
    const std::string words = line.substr(0, line.find_first_of("0123456789"));
    if (words.size() > 4) {
      EXPECT_THAT(text, HasSubstr("\n" + words));
    }
  }
}

// Tables and code may be as wide as they have to be. docs/output.py looks at README.md and docs/.
TEST(Readme, LinesOfItsNeighboursAreAtMost140Columns) {
  for (const char* name : {"CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md"}) {
    std::istringstream lines{page(name)};
    bool in_code = false;
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.starts_with("```")) in_code = !in_code;
      if (!in_code && !line.starts_with("|")) {
        EXPECT_LE(line.size(), 140U) << name << ":" << number;
      }
    }
  }
}

}  // namespace
}  // namespace stepcast::test::readme_test

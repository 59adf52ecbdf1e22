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

// The page is short, and what it shows of each answer is the answer's first lines; docs/output.py runs the commands.
TEST(Readme, HasAtMost120LinesAndShortAnswers) {
  std::istringstream lines{page("README.md")};
  int n = 0, n_commands = 0, n_shown = 0;
  bool in_answer = false;
  for (std::string line; std::getline(lines, line); ++n) {
    if (line.starts_with("```")) {
      EXPECT_LE(n_shown, 15) << "before line " << n;
      n_shown = 0;
      in_answer = line == "```console";
    } else if (in_answer && line.starts_with("$ stepcast ")) {
      ++n_commands;
    } else if (in_answer) {
      ++n_shown;
    }
    EXPECT_EQ(line.find("<!--"), std::string::npos) << line;
  }
  EXPECT_LE(n, 120);
  EXPECT_EQ(n_commands, 4);
}

// Tables and code may be as wide as they have to be. docs/output.py looks at README.md and docs/.
TEST(Readme, LinesOfItsNeighboursAreAtMost140Columns) {
  for (const char* name : {"CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "ROADMAP.md",
                           "CODE_OF_CONDUCT.md", "packaging/README.md"}) {
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

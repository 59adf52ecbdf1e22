// What frameworks do is in the rows of workload/framework_rule.cpp: code asks a row and compares no frameworks.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/paths.h"

namespace stepcast::test::framework_questions_test {
namespace {

TEST(FrameworkQuestions, AreAskedOfRows) {
  namespace fs = std::filesystem;
  const std::regex comparison{R"((==|!=) Framework::(?!unknown)\w+|case Framework::\w+)"};
  for (const char* folder : {"src", "apps", "calibrate", "lab", "python/src"}) {
    for (const auto& entry : fs::recursive_directory_iterator(source_dir() / folder)) {
      const auto extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp") continue;
      std::ifstream in{entry.path(), std::ios::binary};
      const std::string text{std::istreambuf_iterator<char>{in}, {}};
      if (text.find(" Framework::") == std::string::npos) continue;
      std::smatch found;
      EXPECT_FALSE(std::regex_search(text, found, comparison))
          << entry.path() << ": " << found.str() << "; ask rule_of() (workload/framework_rule.h)";
    }
  }
}

}  // namespace
}  // namespace stepcast::test::framework_questions_test

// What is installed: stepcast.h and what it includes, and no more than a user of the library could read.

#include <deque>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/version.h"

#include "tests/support/paths.h"

namespace stepcast::test::public_headers_test {
namespace {

using ::testing::ContainerEq;
using ::testing::SizeIs;

constexpr char kFacade[] = "stepcast/api/stepcast.h";
constexpr std::size_t kMostHeaders = 40;

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream in{file};
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// `header` and all headers of the project that it includes, directly or not.
std::set<std::string> include_closure(const std::string& header) {
  static const std::regex kInclude{R"(^\s*#\s*include\s*"(stepcast/[^"]+)\")"};
  std::set<std::string> seen{header};
  std::deque<std::string> open{header};
  for (; !open.empty(); open.pop_front()) {
    for (const std::string& line : lines_of(source_dir() / "src" / open.front())) {
      std::smatch match;
      if (std::regex_search(line, match, kInclude) && seen.insert(match[1].str()).second)
        open.push_back(match[1].str());
    }
  }
  return seen;
}

TEST(PublicHeaders, AreWhatTheFacadeNeedsAndNothingElse) {
  const std::vector<std::string> list = lines_of(source_dir() / "src/stepcast/api/public_headers.txt");
  EXPECT_THAT(std::set<std::string>(list.begin(), list.end()), ContainerEq(include_closure(kFacade)))
      << "src/stepcast/api/public_headers.txt is what is installed";
  EXPECT_THAT(list, SizeIs(::testing::Le(kMostHeaders)))
      << "a type that is only passed on can be declared instead of included";
}

TEST(PublicHeaders, NamespaceOfTheFacadeIsThatOfTheVersion) {
  const std::string version{stepcast::version()};
  const auto first = version.find('.');
  const std::string minor = version.substr(first + 1, version.find('.', first + 1) - first - 1);
  EXPECT_THAT(
      lines_of(source_dir() / "src" / kFacade),
      ::testing::Contains(fmt::format("inline namespace v{}_{} {{", version.substr(0, first), minor)));
}

}  // namespace
}  // namespace stepcast::test::public_headers_test

// docs/operations.md shows the table of operators: what it shows is what the code does.
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/base/output_file.h"
#include "stepcast/operation/framework_ops.h"

#include "tests/support/paths.h"

namespace stepcast::test {
namespace {

constexpr std::string_view kBegin = "<!-- operators: begin -->\n";
constexpr std::string_view kEnd = "<!-- operators: end -->";

// One line for all operators of a family, direction and role.
std::string table() {
  std::map<std::tuple<std::string_view, Direction, OpRole>, std::vector<std::string_view>> groups;
  for (const FrameworkOp& op : framework_ops()) groups[{op.family, op.direction, op.role}].push_back(op.name);
  std::string out = "| operations | direction | role | operators |\n|---|---|---|---|\n";
  for (const auto& [key, names] : groups) {
    const auto& [family, direction, role] = key;
    out += "| " + std::string(family.empty() ? "-" : family) + " | ";
    out += std::string(family.empty() ? "-" : to_string(direction)) + " | " + std::string(to_string(role)) +
           " |";
    const char* comma = " ";
    for (const std::string_view name : names) {
      out += comma;
      out += '`';
      for (const char c : name)
        out += c == '|' ? std::string("\\|") : std::string(1, c);  // a cell ends at a bar
      out += '`';
      comma = ", ";
    }
    out += " |\n";
  }
  return out;
}

TEST(OperationsDocument, ShowsTheTableOfOperators) {
  const auto path = source_dir() / "docs" / "operations.md";
  const auto text = read_file(path);
  ASSERT_TRUE(text.ok()) << text.error().message();
  const std::size_t begin = text->find(kBegin), end = text->find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::size_t first = begin + kBegin.size();
  const std::string expected = table();
  if (std::getenv("STEPCAST_WRITE_DOCUMENTS") != nullptr) {
    ASSERT_TRUE(write_file(path, text->substr(0, first) + expected + text->substr(end)).ok());
    return;
  }
  EXPECT_EQ(text->substr(first, end - first), expected)
      << "run this test with STEPCAST_WRITE_DOCUMENTS=1 to write docs/operations.md anew";
}

}  // namespace
}  // namespace stepcast::test

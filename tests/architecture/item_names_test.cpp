// Names of work items, blocks, lanes and tasks are for people: sources outside report/ never compare them, so that a renamed
// item changes no forecast. Code decides by roles (ItemRole, BlockRole, LaneRole).

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/paths.h"

namespace stepcast::test::item_names_test {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What a variable or function that gives a named part of a step is called: the last word of its name.
constexpr std::array<std::string_view, 7> kParts = {"item", "items",   "block", "block_of",
                                                    "lane", "lane_of", "task"};
constexpr std::array<std::string_view, 8> kComparisons = {"==",        "!=",    ".starts_with", ".ends_with",
                                                          ".contains", ".find", ".compare",     ".substr"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at;
  return at;
}

// The identifier whose member stands at `dot`: "lane_of" of `flat.lane_of(c, task).name`, "list" of `list[i].name`.
std::string_view owner_of(std::string_view text, std::size_t dot) {
  std::size_t end = dot;
  while (end > 0 && (text[end - 1] == ')' || text[end - 1] == ']')) {
    int depth = 0;
    do {
      --end;
      depth += text[end] == ')' || text[end] == ']' ? 1 : text[end] == '(' || text[end] == '[' ? -1 : 0;
    } while (end > 0 && depth > 0);
  }
  std::size_t begin = end;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

bool is_part(std::string_view owner) {
  while (owner.ends_with('_')) owner.remove_suffix(1);
  return std::ranges::any_of(kParts, [&](std::string_view part) {
    return owner == part || (owner.size() > part.size() && owner.ends_with(part) &&
                             owner[owner.size() - part.size() - 1] == '_');
  });
}

// Lines that compare the name of a part of a step, or search by it.
std::vector<std::string> comparisons_of(std::string_view text) {
  std::vector<std::string> found;
  constexpr std::string_view kName = "name";
  for (std::size_t at = text.find(kName); at != std::string_view::npos; at = text.find(kName, at + 1)) {
    const std::size_t end = at + kName.size();
    if (at < 2 || (end < text.size() && is_word(text[end]))) continue;
    const bool member = text[at - 1] == '.', through = text.substr(at - 2, 2) == "->";
    bool compares = text.substr(at - 2, 2) == "::" && text.substr(0, at).ends_with("&WorkItem::");
    if ((member || through) && is_part(owner_of(text, at - (member ? 1 : 2)))) {
      std::size_t behind = skip_blanks(text, end);
      if (text.substr(behind).starts_with("()")) behind = skip_blanks(text, behind + 2);
      compares = std::ranges::any_of(
          kComparisons, [&](std::string_view with) { return text.substr(behind).starts_with(with); });
    }
    if (!compares) continue;
    const std::size_t line = text.rfind('\n', at) + 1;
    found.emplace_back(text.substr(line, std::min(text.find('\n', at), text.size()) - line));
  }
  return found;
}

TEST(ItemNames, NothingOutsideReportsComparesThem) {
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() / "src" / "stepcast")) {
    const std::string path = entry.path().generic_string();
    const bool is_source = path.ends_with(".h") || path.ends_with(".cpp");
    if (!is_source || path.find("/report/") != std::string::npos) continue;
    std::ifstream in{entry.path(), std::ios::binary};
    const std::string text{std::istreambuf_iterator<char>{in}, {}};
    EXPECT_THAT(comparisons_of(text), IsEmpty()) << path << ": decide by a role instead";
  }
}

TEST(ItemNames, FindsComparisons) {
  for (const std::string_view line :
       {R"(if (item.name == "qkv"))", R"(return work_item->name != name;)",
        R"(block.name().starts_with("forward"))", R"(if (flat.lane_of(c, task).name == kWeights))",
        R"(std::ranges::find(all, "ffn_down", &WorkItem::name);)", R"(block_.name() == "update")",
        R"(list.items[i].name.find("cast"))"}) {
    EXPECT_THAT(comparisons_of(line), SizeIs(1)) << line;
  }
}

TEST(ItemNames, PassesWhatOnlyShowsThem) {
  for (const std::string_view line :
       {R"(names.intern(item.name))", R"(BlockBuilder builder{block.name(), block.role()};)",
        R"(if (platform.name == "dgx-h100"))", R"(item.names == other)"}) {
    EXPECT_THAT(comparisons_of(line), IsEmpty()) << line;
  }
}

}  // namespace
}  // namespace stepcast::test::item_names_test

// docs/constants.csv names every floating-point constant of the rooms that forecast, next to its file.

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/paths.h"

namespace stepcast::test::constants_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::array kRooms = {"cost",     "predict",  "recommend", "retrace", "rebuild", "trace",
                               "workload", "describe", "calibrate", "run",     "formats"};

// The folder that a room lies in: two rooms are libraries of their own.
fs::path root_of(const std::string& room) {
  return room == "calibrate" || room == "lab" ? source_dir() : source_dir() / "src" / "stepcast";
}

std::string text_of(const fs::path& file) {
  std::ifstream in{file, std::ios::binary};
  EXPECT_TRUE(in) << file;
  return {std::istreambuf_iterator<char>{in}, {}};
}

// The names of the constants that `source` defines: `constexpr double kA = 1, kB = 2;` gives kA and kB.
std::vector<std::string> constants_of(const std::string& source) {
  static const std::regex definition{R"(constexpr\s+(?:double|float)\s+(k[A-Z][^;]*);)"};
  static const std::regex name{R"((?:^|,\s*)(k[A-Z]\w*)\s*=)"};
  std::vector<std::string> names;
  for (std::sregex_iterator it{source.begin(), source.end(), definition}, end; it != end; ++it) {
    const std::string declarators = (*it)[1];
    for (std::sregex_iterator one{declarators.begin(), declarators.end(), name}; one != end; ++one) {
      names.push_back((*one)[1]);
    }
  }
  return names;
}

// What the list names, as "file" and "file constant": a row names files in backquotes, each followed by its
// constants.
std::set<std::string> named_in(const std::string& page) {
  static const std::regex quoted{R"(`([\w/]+\.(?:cpp|h)|k[A-Z]\w*)`)"};
  std::set<std::string> named;
  std::string file;
  for (std::sregex_iterator it{page.begin(), page.end(), quoted}, end; it != end; ++it) {
    const std::string word = (*it)[1];
    if (word.front() == 'k' && word.find('.') == std::string::npos) {
      named.insert(file + " " + word);
    } else {
      file = word;
      named.insert(file);
    }
  }
  return named;
}

TEST(Constants, AreFoundInASource) {
  EXPECT_THAT(constants_of("constexpr double kA = 1e-3, kB = 2 * 1024.0;  // both\n"
                           "inline constexpr float kC = 0.5F;\n"
                           "constexpr double kLong =\n    4;\n"
                           "constexpr int kD = 4;\nconst double e = kA;\n"),
              ElementsAre("kA", "kB", "kC", "kLong"));
}

TEST(Constants, AreFoundInTheList) {
  EXPECT_THAT(named_in("| x | 1 | `cost/a.cpp` `kA`, `kB`; `cost/b.h` `kA` | assumed |\n"),
              ElementsAre("cost/a.cpp", "cost/a.cpp kA", "cost/a.cpp kB", "cost/b.h", "cost/b.h kA"));
}

TEST(Constants, AreAllInTheList) {
  const std::set<std::string> named = named_in(text_of(source_dir() / "docs" / "constants.csv"));
  std::size_t found = 0;
  for (const char* room : kRooms) {
    const fs::path root = root_of(room), folder = root / room;
    ASSERT_TRUE(fs::exists(folder)) << folder;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
      const std::string file = entry.path().lexically_relative(root).generic_string();
      for (const std::string& constant : constants_of(text_of(entry.path()))) {
        ++found;
        EXPECT_TRUE(named.contains(file + " " + constant))
            << "docs/constants.csv does not name `" << constant << "` of `" << file
            << "`: add a row with its value and its origin, or, where the constant moved, mend its row";
      }
    }
  }
  EXPECT_GT(found, 100U) << "the pattern no longer finds what the sources hold";
}

TEST(Constants, OfTheListExist) {
  std::vector<std::string> gone;
  for (const std::string& entry : named_in(text_of(source_dir() / "docs" / "constants.csv"))) {
    const auto space = entry.find(' ');
    const fs::path file = root_of(entry.substr(0, entry.find('/'))) / entry.substr(0, space);
    const bool there = fs::exists(file) && (space == std::string::npos ||
                                            text_of(file).find(entry.substr(space + 1)) != std::string::npos);
    if (!there) gone.push_back(entry);
  }
  EXPECT_THAT(gone, IsEmpty()) << "docs/constants.csv names these, and the sources do not have them there";
}

}  // namespace
}  // namespace stepcast::test::constants_test

// What users read is plain English: strings of the product hold no phrases of our own dialect.

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

namespace stepcast::test::words_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Phrase {
  std::string_view phrase, instead;
};

constexpr std::array kDialect = {
    Phrase{"beside", "next to, overlapped with, together with"},
    Phrase{"nobody", "unmeasured, unknown, never"},
    Phrase{"is no", "is not a"},
    Phrase{"are no", "are not"},
    Phrase{"so many", "number of"},
    Phrase{"hold against", "override"},
    Phrase{"holds against", "overrides"},
    Phrase{"stand for", "represent"},
    Phrase{"stands for", "represents"},
    Phrase{"that ship", "shipped"},
    Phrase{"that ships", "shipped"},
    Phrase{"is called so", "has this name"},
    Phrase{"as it is", "unchanged"},
    Phrase{"as they are", "unchanged"},
    Phrase{"the like of", "a similar"},
};

// English that begins or ends like one of them.
constexpr std::array<std::string_view, 3> kFine = {"there is no", "there are no", "is no longer"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

// Where the literal that begins at `at` ends (behind its last quote): "..." with escapes, R"x(...)x", and in Python also
// '...' and three quotes.
std::size_t literal_end(std::string_view source, std::size_t at, bool python) {
  if (!python && at > 0 && source[at - 1] == 'R') {
    const std::size_t open = source.find('(', at);
    const std::string close = ")" + std::string{source.substr(at + 1, open - at - 1)} + "\"";
    return std::min(source.find(close, open), source.size() - close.size()) + close.size();
  }
  const std::string three(3, source[at]);
  if (python && source.substr(at, 3) == three)
    return std::min(source.find(three, at + 3), source.size() - 3) + 3;
  std::size_t end = at + 1;
  while (end < source.size() && source[end] != source[at]) end += source[end] == '\\' ? 2U : 1U;
  return std::min(end + 1, source.size());
}

// The texts of the string literals of a source, without its comments; literals that follow each other are one.
std::vector<std::string> literals_of(std::string_view source, bool python) {
  std::vector<std::string> texts;
  std::size_t last_end = std::string_view::npos;
  for (std::size_t at = 0; at < source.size();) {
    const bool comment = python ? source[at] == '#' : source.substr(at, 2) == "//";
    if (comment) {
      at = std::min(source.find('\n', at), source.size());
    } else if (!python && source.substr(at, 2) == "/*") {
      at = std::min(source.find("*/", at), source.size() - 2) + 2;
    } else if (source[at] == '"' || (python && source[at] == '\'')) {
      const std::size_t end = literal_end(source, at, python);
      const std::string_view between =
          texts.empty() ? "x" : source.substr(last_end, std::max(at, last_end) - last_end);
      const std::string text{source.substr(at + 1, end - at - 2)};
      if (between.find_first_not_of(" \n") == std::string_view::npos) {
        texts.back() += text;
      } else {
        texts.push_back(text);
      }
      at = last_end = end;
    } else if (!python && source[at] == '\'' && (at == 0 || !is_word(source[at - 1]))) {
      at = literal_end(source, at, true);
    } else {
      ++at;
    }
  }
  return texts;
}

std::vector<std::string> dialect_of(const std::string& source, bool python) {
  std::vector<std::string> found;
  for (std::string text : literals_of(source, python)) {
    const std::string whole = text;
    for (const std::string_view fine : kFine) {
      for (std::size_t at = text.find(fine); at != std::string::npos; at = text.find(fine, at)) {
        text.erase(at, fine.size());
      }
    }
    for (const Phrase& phrase : kDialect) {
      if (!has_word(text, phrase.phrase)) continue;
      found.push_back("\"" + whole + "\": not `" + std::string{phrase.phrase} + "` but `" +
                      std::string{phrase.instead} + "`");
    }
  }
  return found;
}

TEST(Words, OfLiteralsAreRead) {
  EXPECT_THAT(
      literals_of(
          "f(\"a \"  // c \"d\"\n  , '\"', R\"(b\"c)\" \"d\\\"\");  /* \"e\" */ g(1'000, \"h\" \"i\")",
          false),
      ElementsAre("a ", "(b\"c)d\\\"", "hi"));
  EXPECT_THAT(literals_of("x = 'a\"b'  # \"c\"\ny = \"\"\"d\n'e'\"\"\"\n", true),
              ElementsAre("a\"b", "\"\"d\n'e'\"\""));
}

TEST(Words, OfTheDialectAreFound) {
  EXPECT_EQ(dialect_of("f(\"what stands \"\n\"beside it\")  // nobody", false).size(), 1U);
  EXPECT_EQ(dialect_of("f(\"this is no file\", \"there is no file\", \"besides\")", false).size(), 1U);
}

TEST(Words, OfTheProductAreFreeOfDialect) {
  std::vector<std::string> problems;
  std::size_t n_sources = 0;
  for (const char* folder : {"src", "apps", "lab", "calibrate", "python/src", "python/stepcast"}) {
    if (!fs::exists(source_dir() / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(source_dir() / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp" && extension != ".def" && extension != ".py") continue;
      std::ifstream in{entry.path(), std::ios::binary};
      const std::string source{std::istreambuf_iterator<char>{in}, {}};
      ++n_sources;
      for (const std::string& found : dialect_of(source, extension == ".py")) {
        problems.push_back(entry.path().lexically_relative(source_dir()).generic_string() + ": " + found);
      }
    }
  }
  EXPECT_GT(n_sources, 400U);
  EXPECT_THAT(problems, IsEmpty());
}

}  // namespace
}  // namespace stepcast::test::words_test

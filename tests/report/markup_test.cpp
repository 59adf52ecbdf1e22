// HTML that is made of texts from anywhere: they stay text.

#include "stepcast/report/html/markup.h"

#include <limits>
#include <random>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/utf8.h"

#include "tests/report/html_check.h"

namespace stepcast::test::markup_test {
namespace {

TEST(EscapeMarkup, MarkupBecomesText) {
  EXPECT_EQ(escape_markup("</script><b a=\"1\" b='2'>&amp;"),
            "&lt;/script&gt;&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;amp;");
  EXPECT_EQ(escape_markup("1 KiB, 3 ms, \xC2\xB5s"), "1 KiB, 3 ms, \xC2\xB5s");
}

TEST(EscapeMarkup, ControlCharactersAreShown) {
  EXPECT_EQ(escape_markup(std::string_view{"a\0b\x1B[31m\x7F", 9}),
            "a\xE2\x90\x80"
            "b\xE2\x90\x9B[31m\xE2\x90\xA1");
  EXPECT_EQ(escape_markup("line\n\ttab"), "line\n\ttab");
  // A right-to-left override, a C1 control, a byte that is no UTF-8, a noncharacter.
  for (const std::string_view hostile : {"\xE2\x80\xAE", "\xC2\x85", "\xFF", "\xEF\xBF\xBF"}) {
    EXPECT_EQ(escape_markup(hostile), "\xEF\xBF\xBD") << hostile;
  }
}

// Whatever bytes: the result is UTF-8, holds nothing that ends a text or an attribute, and is what it was where that
// was plain.
TEST(EscapeMarkup, NoBytesLeaveTheText) {
  std::mt19937 random{7};
  std::string alphabet = "<>&\"'/=;ab \n\x1B\x7F\xC3\xA9\xE2\x80\xAE\xF0\x9F\x98\x80\xFF";
  alphabet += '\0';
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto n = random() % 40; n > 0; --n) {
      text += random() % 3 == 0 ? static_cast<char>(random() % 256) : alphabet[random() % alphabet.size()];
    }
    const std::string escaped = escape_markup(text);
    ASSERT_EQ(escaped.find_first_of("<>\"'"), std::string::npos) << text;
    for (std::size_t at = 0; at < escaped.size();) {
      const std::size_t length = utf8_length(std::string_view{escaped}.substr(at));
      ASSERT_GT(length, 0U) << text;
      if (escaped[at] == '&') {
        const std::string_view rest = std::string_view{escaped}.substr(at);
        ASSERT_TRUE(rest.starts_with("&amp;") || rest.starts_with("&lt;") || rest.starts_with("&gt;") ||
                    rest.starts_with("&quot;") || rest.starts_with("&#39;"))
            << text;
      }
      at += length;
    }
  }
}

TEST(Coordinate, IsShortAndNeverStrange) {
  EXPECT_EQ(coordinate(12), "12");
  EXPECT_EQ(coordinate(12.34), "12.3");
  EXPECT_EQ(coordinate(-0.01), "0");
  EXPECT_EQ(coordinate(1e7), "10000000");
  EXPECT_EQ(coordinate(std::numeric_limits<double>::quiet_NaN()), "0");
  EXPECT_EQ(coordinate(std::numeric_limits<double>::infinity()), "0");
}

TEST(Markup, ClosesWhatItOpens) {
  Markup markup;
  markup.open("p", {{"class", "a\"b"}}).text("x < y").leaf("br").element("b", {}, "&").close();
  EXPECT_EQ(markup.depth(), 0U);
  EXPECT_EQ(markup.str(), "<p class=\"a&quot;b\">x &lt; y<br/><b>&amp;</b></p>");
  EXPECT_EQ(html_problem(markup.str()), "");
}

TEST(HtmlCheck, FindsWhatIsWrong) {
  EXPECT_NE(html_problem("<p><b></p>"), "");
  EXPECT_NE(html_problem("<p>"), "");
  EXPECT_NE(html_problem("a < b"), "");
  EXPECT_NE(html_problem("<p a=b></p>"), "");
  EXPECT_EQ(html_problem("<!DOCTYPE html><p a=\"b\">x</p><script>if (a < b) {}</script>"), "");
}

}  // namespace
}  // namespace stepcast::test::markup_test

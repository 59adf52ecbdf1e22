#include "stepcast/logs/detail/log_text.h"

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/logs/detail/settings_blocks.h"

namespace stepcast::detail::log_text_test {
namespace {

TEST(LogText, ReadsNumbersAsLogsPrintThem) {
  EXPECT_DOUBLE_EQ(number_at(" 4,376 x")->value, 4376);
  EXPECT_DOUBLE_EQ(number_at("4,37")->value, 4);  // no thousands
  EXPECT_DOUBLE_EQ(number_at("1.249e+03")->value, 1249);
  EXPECT_DOUBLE_EQ(number_at("8322.0/8330.1")->value, 8322);
  // Half a unit of the last digit: 1.249e+03 is known to 0.5, 6.08 to 0.005.
  EXPECT_DOUBLE_EQ(number_at("1.249e+03")->half_digit, 0.5);
  EXPECT_DOUBLE_EQ(number_at("6.08")->half_digit, 0.005);
  EXPECT_FALSE(number_at("N/A"));
  EXPECT_FALSE(number_at(""));
  EXPECT_DOUBLE_EQ(number_behind("'train_runtime': '211'", "'train_runtime'")->value, 211);
}

TEST(LogText, ReadsDates) {
  // 2026-01-02 00:00:00 is day 20455 since 1970.
  EXPECT_DOUBLE_EQ(*time_of_line("[2026-01-02 00:00:10,250] x"), 20455 * 86400.0 + 10.25);
  EXPECT_DOUBLE_EQ(*time_of_line("2026-01-02T00:01:00+08:00"), 20455 * 86400.0 + 60);
  for (const char* line :
       {"2026/01/02 00:00:10 - mmengine", "01/02/2026 00:00:10 [INFO|DP=0]", "[01/02/26 00:00:10] INFO"})
    EXPECT_DOUBLE_EQ(time_of_line(line).value_or(0), 20455 * 86400.0 + 10) << line;
  // 2000-01-02 is day 10958 since 1970.
  for (const char* line : {"I0102 00:00:10.000000 139 pyconfig.py", "Jan 02 00:00:10 node",
                           "Jan  2 00:00:10 node", "[01/02 00:00:10 d2.utils.events]:  eta: 1:02:03"})
    EXPECT_DOUBLE_EQ(time_of_line(line).value_or(0), 10958 * 86400.0 + 10) << line;
  EXPECT_FALSE(time_of_line("eta: 1 day, 10:24:31  time: 2.0"));
  EXPECT_FALSE(time_of_line("2026-13-02 00:00:10"));
  EXPECT_FALSE(time_of_line("200 20 2"));
}

TEST(MultiPatternMatcher, FindsEveryTextWhateverItsCase) {
  constexpr std::array<std::string_view, 4> kTexts{"she", "he", "hers", "x:"};
  const MultiPatternMatcher needles{kTexts};
  EXPECT_EQ(needles.found_in("usHers"), 0b0111U);  // "she" ends inside of it, too
  EXPECT_EQ(needles.found_in("h e"), 0U);
  EXPECT_EQ(needles.found_in("X:"), 0b1000U);
  EXPECT_EQ(needles.found_in(""), 0U);
}

TEST(MultiPatternMatcher, DropsNoTextBehindThe64th) {
  std::vector<std::string> texts;
  for (char a = 'a'; a <= 'h'; ++a)
    for (char b = 'a'; b <= 'p'; ++b) texts.push_back({a, b, '.'});
  const std::vector<std::string_view> all{texts.begin(), texts.end()};
  ASSERT_EQ(all.size(), MultiPatternMatcher::kMost);
  const MultiPatternMatcher needles{all};
  EXPECT_EQ(needles.found_in("aa. hp. no"), MultiPatternMatcher::Found{}.set(0).set(127));
  const std::vector<std::string_view> more(all.size() + 1, "x");
  EXPECT_THROW(MultiPatternMatcher{more}, std::logic_error);
}

TEST(SettingsText, TurnsPythonIntoJson) {
  EXPECT_EQ(python_to_json(R"({'a': True, 'b': None, "c": (1, 2e-5), 'd': 'it\'s "x"', 'e': torch.bf16})"),
            R"({"a": true, "b": null, "c": [1, 2e-5], "d": "it's \"x\"", "e": "torch.bf16"})");
}

}  // namespace
}  // namespace stepcast::detail::log_text_test

#include "stepcast/trace/detail/json_cursor.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/base/string_table.h"
#include "stepcast/trace/detail/event_store.h"
#include "stepcast/trace/detail/interner.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast::detail::json_cursor_test {
namespace {

// A cursor may read beyond its text, so the text gets room behind it.
std::string padded(std::string_view text) { return std::string(text) + std::string(64, '\0'); }

std::string walk(std::string_view text) {
  const std::string storage = padded(text);
  JsonCursor c(std::string_view{storage}.substr(0, text.size()));
  std::string log;
  std::string_view key;
  std::string_view value;
  for (c.enter('{'); c.next_member(key);) {
    if (!c.raw_value(value)) break;
    log += std::string(key) + "=" + std::string(value) + ";";
  }
  if (c.failed()) return log + " expected " + c.problem();
  return c.at_end() ? log : log + " more";
}

TEST(JsonCursor, WalksObjects) {
  EXPECT_EQ(walk(R"({"a": 1, "b" : "x\"}", "c":[1,{"d":"]"}], "e":null})"),
            R"(a=1;b="x\"}";c=[1,{"d":"]"}];e=null;)");
  EXPECT_EQ(walk("{}"), "");
  EXPECT_EQ(walk("{} 1"), " more");
}

TEST(JsonCursor, StopsAtTheFirstMistake) {
  EXPECT_EQ(walk("[1]"), " expected an object");
  EXPECT_EQ(walk("{"), " expected a closing bracket");
  EXPECT_EQ(walk(R"({"a": 1 "b": 2})"), "a=1; expected ',' or a closing bracket");
  EXPECT_EQ(walk(R"({"a" 1})"), " expected ':'");
  EXPECT_EQ(walk(R"({,"a": 1})"), " expected a key in quotes");
  EXPECT_EQ(walk(R"({"a": 1,})"), "a=1; expected a key in quotes");
  EXPECT_EQ(walk(R"({"a": })"), " expected a value");
  EXPECT_EQ(walk(R"({"a": "x)"), " expected a closing quote");
  EXPECT_EQ(walk(R"({"a": "x\)"), " expected a closing quote");
  EXPECT_EQ(walk(R"({"a": [1)"), " expected a closing bracket");
  EXPECT_EQ(walk(R"({"a)"), " expected a closing quote");
}

std::int64_t integer(std::string_view text) {
  std::int64_t out = 0;
  EXPECT_TRUE(parse_integer(text, out)) << text;
  return out;
}

TEST(ParseInteger, KeepsUnsignedIdentifiersAsWrappedNumbers) {
  EXPECT_EQ(integer("0"), 0);
  EXPECT_EQ(integer("-17"), -17);
  EXPECT_EQ(integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(integer("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(static_cast<std::uint64_t>(integer("10159970886766084423")), 10159970886766084423U);
  EXPECT_EQ(integer("18446744073709551615"), -1);
  std::int64_t ignored = 0;
  for (const char* text : {"", "-", "1.5", "1e3", "abc", "18446744073709551616", "99999999999999999999999",
                           "0x0", "-9223372036854775809", "1 "}) {
    EXPECT_FALSE(parse_integer(text, ignored)) << text;
  }
}

TEST(ParseMicroseconds, IsExact) {
  struct Case {
    const char* text;
    std::int64_t ns;
  };
  constexpr Case kCases[] = {
      {"0", 0},
      {"5", 5000},
      {"-5.5", -5500},
      {"1712195495502094.5", 1712195495502094500},  // needs 61 bits
      {"1712195495502094.502", 1712195495502094502},
      {"1712195495502094", 1712195495502094000},
      {"4458676522690.655", 4458676522690655},
      {"68.0", 68000},
      {"0.001", 1},
      {"0.0004", 0},
      {"0.0005", 1},
      {"848671.6747283936", 848671675},
      {"9223372036854775.807", INT64_MAX},
      {"1e3", 1'000'000},
      {"1.5E+3", 1'500'000},
      {"25e-4", 3},
      {"0.000001e6", 1000},
      {"1e-400", 0},
      {"0e99999", 0},
      {"00012", 12000},
  };
  for (const Case& c : kCases) {
    std::int64_t ns = -7;
    EXPECT_EQ(parse_microseconds(c.text, ns), TimeError::none) << c.text;
    EXPECT_EQ(ns, c.ns) << c.text;
  }
  std::int64_t ns = 0;
  for (const char* text :
       {"", "-", ".", "abc", "1.2.3", "1e", "1e+", "1x", "--1", "0x10", "nan", "1e999999999"}) {
    EXPECT_EQ(parse_microseconds(text, ns), TimeError::not_a_number) << text;
  }
  for (const char* text : {"1e300", "9223372036854775.808", "99999999999999999999999999", "1e99999"}) {
    EXPECT_EQ(parse_microseconds(text, ns), TimeError::out_of_range) << text;
  }
}

TEST(ParseIntegerList, TakesListsOnly) {
  std::vector<std::int64_t> list{9};
  EXPECT_TRUE((parse_integer_list<std::int64_t>("[1, 2,3 , -4]", list)));
  EXPECT_EQ(list, (std::vector<std::int64_t>{1, 2, 3, -4}));
  EXPECT_TRUE((parse_integer_list<std::int64_t>("[]", list)));
  EXPECT_TRUE(list.empty());
  for (const char* text : {"", "[", "1, 2", "[1, 2", "[1, 2, ..., 128]", "[0, 1, ...]", "[a]", "[1;2]"}) {
    EXPECT_FALSE((parse_integer_list<std::int64_t>(text, list))) << text;
  }
}

TEST(Unescape, ResolvesEveryEscape) {
  std::string out;
  EXPECT_TRUE(unescape(R"(a\"b\\c\/d\b\f\n\r\te)", out));
  EXPECT_EQ(out, "a\"b\\c/d\b\f\n\r\te");
  EXPECT_TRUE(unescape(R"(\u0041\u00e9\u20ac\ud83d\ude00)", out));
  EXPECT_EQ(out, "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_TRUE(unescape(R"(\ud83dx\ude00)", out)) << "halves of characters";
  EXPECT_EQ(out, "\xef\xbf\xbdx\xef\xbf\xbd");
  for (const char* text : {"\\", "\\x", "\\u12", "\\uzzzz"}) EXPECT_FALSE(unescape(text, out)) << text;
}

TEST(Interner, GivesEqualTextsEqualIds) {
  StringTable table;
  Interner interner(table);
  const NameId a = interner.text({"a\\nb", true});
  EXPECT_EQ(table.text(a), "a\nb");
  EXPECT_EQ(interner.text({"a\\nb", true}), a);
  EXPECT_EQ(interner.text({"a\\u000ab", true}), a) << "spelled in another way";
  EXPECT_EQ(table.text(interner.text({"bad \\x", true})), "bad \\x");
  EXPECT_EQ(table.text(interner.compact_json("[[1, 2],\n [\"a b\"]]")), "[[1,2],[\"a b\"]]");
  EXPECT_TRUE(interner.text({"", false}).valid());
  std::vector<NameId> ids;
  for (int i = 0; i < 5000; ++i) ids.push_back(interner.text({"name " + std::to_string(i), false}));
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(interner.text({"name " + std::to_string(i), false}), ids[static_cast<std::size_t>(i)]);
    EXPECT_EQ(table.text(ids[static_cast<std::size_t>(i)]), "name " + std::to_string(i));
  }
}

TEST(SortByTime, PutsWhatEnclosesFirstAndKeepsTheOrderOfEquals) {
  std::vector<CpuOp> ops;
  std::uint32_t state = 7;
  for (int i = 0; i < 3000; ++i) {
    state = state * 1664525U + 1013904223U;
    CpuOp op;
    op.start = Nanoseconds{(state >> 20) % 50};
    op.duration = Nanoseconds{(state >> 10) % 5};
    op.order = i;
    ops.push_back(op);
  }
  std::vector<CpuOp> expected = ops;
  std::stable_sort(expected.begin(), expected.end(), [](const CpuOp& a, const CpuOp& b) {
    return a.start != b.start ? a.start < b.start : a.duration > b.duration;
  });
  sort_by_time(ops);
  for (std::size_t i = 0; i < ops.size(); ++i) ASSERT_EQ(ops[i].order, expected[i].order) << i;
}

TEST(ChunkedList, KeepsTheOrder) {
  ChunkedList<int> list;
  EXPECT_TRUE(list.take().empty());
  for (int i = 0; i < 10000; ++i) list.push_back(i);
  EXPECT_EQ(list.size(), 10000U);
  const std::vector<int> all = list.take();
  ASSERT_EQ(all.size(), 10000U);
  for (int i = 0; i < 10000; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(list.size(), 0U);
}

}  // namespace
}  // namespace stepcast::detail::json_cursor_test

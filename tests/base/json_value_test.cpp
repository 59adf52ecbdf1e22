#include "stepcast/base/json_value.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::json_value_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string message_of(std::string_view text, const JsonLimits& limits = {}) {
  const auto parsed = parse_json(text, "my.json", limits);
  return parsed.ok() ? "no error" : parsed.error().message();
}

TEST(JsonValue, KeepsKindsOrderAndLines) {
  const auto root = parse_json(
      "{\n \"b\": [1, -2.5e3],\n \"a\": {\"t\": true, \"n\": null},\n \"s\": \"x\\n\\u00e9\"\n}", "f");
  ASSERT_TRUE(root.ok()) << root.error().message();
  ASSERT_TRUE(root->is_object());
  ASSERT_EQ(root->members().size(), 3U);
  EXPECT_EQ(root->members()[0].key, "b");
  EXPECT_EQ(root->find("b")->line(), 2U);
  EXPECT_EQ(root->find("b")->numbers(), (std::vector<double>{1, -2500}));
  EXPECT_TRUE(root->find("a")->find("t")->truth());
  EXPECT_TRUE(root->find("a")->find("n")->is_null());
  EXPECT_EQ(root->find("s")->text(), "x\n\xc3\xa9");
  EXPECT_EQ(root->find("s")->line(), 4U);
  EXPECT_EQ(root->find("z"), nullptr);
}

TEST(JsonValue, WritesWhatReadsBackEqual) {
  const std::string text =
      R"({"tiny":5e-324,"third":0.3333333333333333,"big":1.7976931348623157e+308,"whole":8589934592,"s":"\"\\\t\u0001"})";
  const auto root = parse_json(text, "f");
  ASSERT_TRUE(root.ok()) << root.error().message();
  EXPECT_EQ(compact_json(*root), text);
  const auto again = parse_json(pretty_json(*root), "f");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *root);
}

TEST(JsonValue, PrettyTextKeepsOnALineWhatFits) {
  const auto root = parse_json(R"({"a":{"x":1,"y":[1,2]},"b":{"c":{"d":[{"e":1}]}}})", "f");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(pretty_json(*root),
            "{\n"
            "  \"a\": {\"x\": 1, \"y\": [1, 2]},\n"
            "  \"b\": {\n"
            "    \"c\": {\n"
            "      \"d\": [{\"e\": 1}]\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST(JsonValue, WhatIsNotFiniteBecomesNull) {
  EXPECT_EQ(compact_json(JsonValue{std::numeric_limits<double>::infinity()}), "null");
  EXPECT_EQ(compact_json(JsonValue{-0.0}), "0");
}

TEST(JsonValue, ErrorsNameTheLine) {
  EXPECT_THAT(message_of("{\n\"a\": 1,\n\"a\": 2}"),
              AllOf(HasSubstr("my.json: line 3"), HasSubstr("line 2")));
  EXPECT_THAT(message_of("{\n\"a\": NaN}"), AllOf(HasSubstr("line 2"), HasSubstr("NaN")));
  EXPECT_THAT(message_of("{\"a\":\n\n Infinity}"), AllOf(HasSubstr("line 3"), HasSubstr("Infinity")));
  EXPECT_THAT(message_of("{\"a\": -Infinity}"), HasSubstr("line 1"));
  EXPECT_THAT(message_of("{\"a\": 1e999}"), HasSubstr("finite"));
  EXPECT_THAT(message_of("{\"a\": tru}"), HasSubstr("line 1"));
  EXPECT_THAT(message_of("{\"a\": 1,}"), HasSubstr("my.json: "));
  EXPECT_THAT(message_of("{\"a\": 1"), HasSubstr("my.json: "));
  EXPECT_THAT(message_of("{} {}"), HasSubstr("my.json: "));
  EXPECT_THAT(message_of("{\"a\": \"\xff\"}"), HasSubstr("my.json: "));
}

TEST(JsonValue, ErrorsSayWhatWasFoundAndExpected) {
  EXPECT_EQ(message_of("{\n\"a\": 1"),
            "my.json: line 2: not valid JSON, found the end of the text, expected ',' or the '}' that closes "
            "line 1");
  EXPECT_EQ(message_of("{\"a\": 1,}"),
            "my.json: line 1: not valid JSON, found `}`, expected a key in double quotes");
  EXPECT_EQ(message_of("{\"a\" 1}"), "my.json: line 1: not valid JSON, found `1`, expected ':' behind `a`");
  EXPECT_EQ(
      message_of("{\"a\": \"x"),
      "my.json: line 1: not valid JSON, found the end of the text, expected '\"' at the end of the text that "
      "begins in line 1");
  EXPECT_EQ(
      message_of("{\"a\": \"x\ny\"}"),
      "my.json: line 1: not valid JSON, found a line break in a text, expected '\"' at its end, or an escape "
      "such as \\n");
  EXPECT_EQ(message_of("{\"a\": \"\xff\"}"),
            "my.json: line 1: a text that is not UTF-8, found the byte 0xff");
  EXPECT_EQ(message_of("[1,\n2]\nx"), "my.json: line 3: more text behind the end of the document, found `x`");
  EXPECT_EQ(message_of("1"), "my.json: line 1: found `1`, expected an object that begins with '{'");
  EXPECT_EQ(message_of("[1, Infinity]"),
            "my.json: line 1: found `Infinity`, expected a JSON value; NaN and infinity are none");
}

TEST(JsonValue, NumbersAreThoseOfTheStandard) {
  const auto numbers =
      parse_json("[0, -0, 7, -12, 123456789012345, 1234567890123456789, 0.1, 1E2, 1e-400, 2.5e+3]", "f");
  ASSERT_TRUE(numbers.ok()) << numbers.error().message();
  EXPECT_EQ(numbers->numbers(), (std::vector<double>{0, -0.0, 7, -12, 123456789012345.0,
                                                     1234567890123456789.0, 0.1, 100, 0, 2500}));
  for (const char* wrong : {"[01]", "[1.]", "[.5]", "[+1]", "[-]", "[1e]", "[1e+]", "[0x10]", "[1 2]",
                            "[--1]", "[1e999]", "[1.e3]", "[00]", "[-01]"}) {
    EXPECT_THAT(message_of(wrong), HasSubstr("line 1: ")) << wrong;
  }
}

TEST(JsonValue, EscapesAreThoseOfTheStandard) {
  const auto text = parse_json(R"(["\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00"])", "f");
  ASSERT_TRUE(text.ok()) << text.error().message();
  EXPECT_EQ(text->items()[0].text(), "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  for (const char* wrong :
       {R"(["\x"])", R"(["\u12"])", R"(["\ud800"])", R"(["\udc00"])", R"(["\ud800\u0041"])"}) {
    EXPECT_THAT(message_of(wrong), HasSubstr("expected an escape such as")) << wrong;
  }
}

// Texts are read eight characters at a time where all of them are plain: whatever is not, at every place.
TEST(JsonValue, TextsEndAndEscapeAtAnyPlace) {
  for (std::size_t before = 0; before < 20; ++before) {
    for (std::size_t behind = 0; behind < 20; ++behind) {
      const std::string front(before, 'x'), back(behind, '~');
      const auto read = [&](const std::string& middle) {
        return parse_json("[\"" + front + middle + back + "\", 1]", "my.json");
      };
      for (const auto& [written, meant] : {std::pair{"", ""},
                                           {"\\\"", "\""},
                                           {"\\\\", "\\"},
                                           {"\\n", "\n"},
                                           {"\xc3\xa9", "\xc3\xa9"},
                                           {" !#[]\x7f", " !#[]\x7f"}}) {
        const auto value = read(written);
        ASSERT_TRUE(value.ok()) << value.error().message();
        EXPECT_EQ(value->items()[0].text(), front + meant + back);
        EXPECT_EQ(value->items()[1].number(), 1);
      }
      for (const char* wrong : {"\x1f", "\x01", "\n"}) {
        const auto value = read(wrong);
        ASSERT_FALSE(value.ok());
        EXPECT_THAT(value.error().message(), HasSubstr(" in a text"));
      }
      EXPECT_THAT(read("\x80").error().message(), HasSubstr("not UTF-8"));
    }
  }
}

TEST(JsonValue, CopiesChangeAlone) {
  JsonValue first = JsonValue::object();
  first.add("list", JsonValue::array().add(JsonValue{1.0}));
  JsonValue second = first;
  second.add("more", JsonValue{true});
  JsonValue third = second;
  EXPECT_EQ(compact_json(first), R"({"list":[1]})");
  EXPECT_EQ(third, second);
  EXPECT_NE(first, second);
}

// What ships is parsed as far as it is asked for, and is the same for whoever asks.
TEST(JsonValue, WhatIsKnownToBeValidIsReadLater) {
  const std::string numbers = [] {
    std::string list = "1";
    for (int i = 2; i < 200; ++i) list += fmt::format(", {}{}", i % 10 == 0 ? "\n" : "", i);
    return list;
  }();
  const std::string text = fmt::format(
      "{{\"a\": [{{\"b\": {{\"list\": [{0}], \"text\": \"{1}\\\"]\", \"object\": {{\"x\": [{0}], \"y\": "
      "\"}}\"}}, "
      "\"short\": [1]}}}}],\n\"c\": 2}}",
      numbers, std::string(300, '\\') + std::string(300, '['));
  const auto whole = parse_json(text, "f");
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  const auto long_values = long_json_values(text, "f");
  ASSERT_TRUE(long_values.ok()) << long_values.error().message();
  // Of a, its item, b, list, text, object and x.
  EXPECT_EQ(long_values->size(), 7U);
  const auto later = parse_known_json(std::make_shared<const std::string>(text), *long_values, "f");
  ASSERT_TRUE(later.ok()) << later.error().message();
  const JsonValue copy = *later;
  EXPECT_TRUE(later->find("a")->is_deferred() && later->find("a")->is_array() &&
              !later->find("a")->is_object());
  EXPECT_EQ(*later, *whole);
  EXPECT_EQ(copy, *whole);
  EXPECT_EQ(compact_json(copy), compact_json(*whole));
  EXPECT_EQ(later->find("c")->line(), whole->find("c")->line());
  const auto object_of = [](const JsonValue& root) {
    return root.find("a")->items()[0].find("b")->find("object");
  };
  EXPECT_EQ(object_of(*later)->find("y")->line(), object_of(*whole)->find("y")->line());
  EXPECT_TRUE(copy.find("a")->is_array() && !copy.find("a")->is_text()) << "also when it has been parsed";
  JsonValue changed = copy;
  changed.add("d", JsonValue{1.0});
  EXPECT_NE(changed, copy);
}

TEST(JsonValue, WritesNothingThatMovesATerminal) {
  const JsonValue text{std::string{"\x1b[31m\x7f\xff"}};
  EXPECT_EQ(compact_json(text), R"("\u001b[31m\u007f\ufffd")");
  EXPECT_EQ(pretty_json(text), R"("\u001b[31m\u007f\ufffd")"
                               "\n");
}

TEST(JsonValue, EmptyTextScalarsAndBinaryAreErrors) {
  for (const std::string_view text :
       {"", "  \n ", "1", "\"x\"", "null", "\x1f\x8b\x08", "}", "]", "[", "{", "nonsense"}) {
    EXPECT_NE(message_of(text), "no error") << text;
  }
}

TEST(JsonValue, LimitsStopDepthSizeAndCount) {
  EXPECT_THAT(message_of(std::string(40, '[') + std::string(40, ']')), HasSubstr("nested"));
  EXPECT_THAT(message_of(std::string(100000, '[')), HasSubstr("my.json"));
  JsonLimits limits;
  limits.max_values = 3;
  EXPECT_THAT(message_of("[1,2,3,4]", limits), HasSubstr("too many"));
  limits.max_bytes = 8;
  EXPECT_THAT(message_of("[1,2,3,4]", limits), HasSubstr("too large"));
}

}  // namespace
}  // namespace stepcast::json_value_test

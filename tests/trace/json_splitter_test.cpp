#include "stepcast/trace/detail/json_splitter.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/trace/detail/bracket_scan.h"

namespace stepcast::detail::json_splitter_test {
namespace {

// What the splitter gives, one line per step.
std::string steps_of(std::string_view document, JsonSplitter::Options options = {}) {
  ByteSource source = ByteSource::from_memory(document, "doc");
  JsonSplitter splitter(source, {"traceEvents"}, options);
  std::string log;
  for (;;) {
    switch (splitter.next()) {
      case JsonSplitter::Step::member:
        log += "member " + std::string(splitter.key()) + " = " + std::string(splitter.text()) + "\n";
        break;
      case JsonSplitter::Step::list: log += "list " + std::string(splitter.key()) + "\n"; break;
      case JsonSplitter::Step::element:
        EXPECT_EQ(document.substr(splitter.offset(), splitter.text().size()), splitter.text());
        log += std::to_string(splitter.index()) + " @" + std::to_string(splitter.offset()) + " " +
               std::string(splitter.text()) + "\n";
        break;
      case JsonSplitter::Step::end: return log + "end";
      case JsonSplitter::Step::error: return log + "error: " + splitter.take_error().message();
    }
  }
}

TEST(JsonSplitter, GivesMembersAndElements) {
  EXPECT_EQ(steps_of(R"({"a": 1, "traceEvents": [ {"x": [1, 2]} , {} ], "b": {"c": "]}"}})"),
            "member a = 1\n"
            "list traceEvents\n"
            "0 @26 {\"x\": [1, 2]}\n"
            "1 @42 {}\n"
            "member b = {\"c\": \"]}\"}\n"
            "end");
  EXPECT_EQ(steps_of("[\n  {\"a\": 1},\n  {\"a\": 2}\n]\n"), "list \n0 @4 {\"a\": 1}\n1 @16 {\"a\": 2}\nend");
  EXPECT_EQ(steps_of("{}"), "end");
  EXPECT_EQ(steps_of("[]"), "list \nend");
  EXPECT_EQ(steps_of(R"({"traceEvents": []})"), "list traceEvents\nend");
  EXPECT_EQ(steps_of(R"({"traceEvents": 5})"), "member traceEvents = 5\nend");
  EXPECT_EQ(steps_of(R"(["a\"]", 12, null, [[]]])"),
            "list \n0 @1 \"a\\\"]\"\n1 @9 12\n2 @13 null\n3 @19 [[]]\nend");
  EXPECT_EQ(steps_of("\xef\xbb\xbf{\"a\": true}"), "member a = true\nend");
}

TEST(JsonSplitter, IsNotMisledByQuotesAndBackslashes) {
  EXPECT_EQ(steps_of(R"([{"a": "}{]["}])"), "list \n0 @1 {\"a\": \"}{][\"}\nend");
  EXPECT_EQ(steps_of(R"([{"a": "\"}"}])"), "list \n0 @1 {\"a\": \"\\\"}\"}\nend");
  EXPECT_EQ(steps_of(R"([{"a": "\\"}, {"b": "\\\"]"}])"),
            "list \n0 @1 {\"a\": \"\\\\\"}\n1 @14 {\"b\": \"\\\\\\\"]\"}\nend");
}

TEST(JsonSplitter, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(
      steps_of(""),
      "error: doc: found an empty file, expected a trace in JSON; the trace was not written, or not copied");
  EXPECT_EQ(steps_of("hello"),
            "error: doc: found a file that begins with \"hello\", expected a trace in JSON");
  EXPECT_EQ(
      steps_of("[1, 2"),
      "list \n0 @1 1\n1 @4 2\nerror: doc: byte 5: the JSON document ends early, found the end of the file "
      "inside a list, "
      "expected the remainder; the file is incomplete: copy it again, or let the profiler finish writing");
  EXPECT_EQ(steps_of("{\"a\" 1}"), "error: doc: byte 5: found \"1\", expected ':'");
  EXPECT_EQ(steps_of("{\"a\": 1 \"b\": 2}"),
            "member a = 1\nerror: doc: byte 8: found \"\"\", expected ',' or '}'");
  EXPECT_EQ(steps_of("{a: 1}"), "error: doc: byte 1: found \"a\", expected a key in quotes");
  EXPECT_EQ(
      steps_of("[1] x"),
      "list \n0 @1 1\nerror: doc: byte 4: found \"x\", expected the end of the file after the JSON document");
  EXPECT_EQ(steps_of("[1,]"), "list \n0 @1 1\nerror: doc: byte 3: found \"]\", expected a JSON value");
  EXPECT_EQ(steps_of("[1 2]"), "list \n0 @1 1\nerror: doc: byte 3: found \"2\", expected ',' or ']'");
}

TEST(JsonSplitter, LimitsDepthAndSize) {
  JsonSplitter::Options options;
  options.max_depth = 10;
  const std::string ten = std::string(10, '[') + std::string(10, ']');
  EXPECT_EQ(steps_of("[" + ten + "]", options), "list \n0 @1 " + ten + "\nend");
  EXPECT_NE(steps_of("[[" + ten + "]]", options).find("nested too deeply, found more than 10 levels"),
            std::string::npos);
  const std::string bomb(1'000'000, '[');
  EXPECT_NE(steps_of(bomb).find("nested too deeply, found more than 256 levels"), std::string::npos);

  options.max_piece_bytes = 1000;
  EXPECT_NE(steps_of("[{\"a\": \"" + std::string(2000, 'x') + "\"}]", options)
                .find("a value of more than 1000 bytes"),
            std::string::npos);
  EXPECT_NE(steps_of("[\"" + std::string(2000, 'x') + "\"]", options).find("a text of more than 1000 bytes"),
            std::string::npos);
  EXPECT_NE(steps_of("[" + std::string(2000, '1') + "]", options).find("expected a JSON value"),
            std::string::npos);
}

// A document with strings, escapes and nesting at many offsets, cut at every place and read in blocks of
// every size.
TEST(JsonSplitter, DoesNotDependOnTheBlockSize) {
  std::string document = R"({"schemaVersion": 1, "traceEvents": [)";
  for (int i = 0; i < 40; ++i) {
    if (i > 0) document += ",\n";
    document += "{\"name\": \"" + std::string(static_cast<std::size_t>(i), '\\') +
                std::string(static_cast<std::size_t>(i), '\\') + "}\\\"\", \"args\": {\"list\": [[" +
                std::string(static_cast<std::size_t>(i * 3), '7') + "], []]}}";
  }
  document += R"(], "traceName": "x"})";
  const std::string expected = steps_of(document);
  ASSERT_TRUE(expected.ends_with("end")) << expected;
  for (std::size_t block = 1; block < 300; ++block) {
    JsonSplitter::Options options;
    options.block_bytes = block;
    ASSERT_EQ(steps_of(document, options), expected) << block;
  }
  for (std::size_t size = 0; size < document.size(); size += 13) {
    const std::string_view part = std::string_view{document}.substr(0, size);
    JsonSplitter::Options options;
    options.block_bytes = 11;
    ASSERT_EQ(steps_of(part, options), steps_of(part)) << size;
  }
}

TEST(BracketScan, FastAndPortableClassificationAgree) {
  std::uint32_t state = 12345;
  constexpr std::string_view kAlphabet = "{}[]\"\\ax \x00\x7f\xfb\xfd\xdb\xdd";
  for (int round = 0; round < 2000; ++round) {
    char bytes[64];
    for (char& byte : bytes) {
      state = state * 1664525U + 1013904223U;
      byte = round % 2 == 0 ? kAlphabet[(state >> 16) % kAlphabet.size()] : static_cast<char>(state >> 24);
    }
    const ByteMasks fast = classify_64(bytes);
    const ByteMasks portable = classify_64_portable(bytes);
    ASSERT_EQ(fast.quote, portable.quote);
    ASSERT_EQ(fast.backslash, portable.backslash);
    ASSERT_EQ(fast.open, portable.open);
    ASSERT_EQ(fast.close, portable.close);
  }
}

}  // namespace
}  // namespace stepcast::detail::json_splitter_test

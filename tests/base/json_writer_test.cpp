#include "stepcast/base/json_writer.h"

#include <limits>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace stepcast::json_writer_test {
namespace {

template <class Write>
std::string written(const Write& write) {
  JsonWriter json;
  write(json);
  return std::move(json).text();
}

TEST(JsonWriter, NestsObjectsAndArrays) {
  EXPECT_EQ(written([](JsonWriter& j) {
              j.begin_object()
                  .field("a", 1)
                  .key("b")
                  .begin_array()
                  .value(true)
                  .null()
                  .begin_object()
                  .end_object()
                  .end_array();
              j.field("c", "d").end_object();
            }),
            R"({"a":1,"b":[true,null,{}],"c":"d"})");
}

TEST(JsonWriter, IndentsWhereAsked) {
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object()
      .field("a", 1)
      .key("b")
      .begin_array()
      .value(2)
      .value(3)
      .end_array()
      .key("c")
      .begin_array()
      .end_array();
  json.end_object();
  EXPECT_EQ(std::move(json).text(), "{\n  \"a\": 1,\n  \"b\": [\n    2,\n    3\n  ],\n  \"c\": []\n}\n");
}

TEST(JsonWriter, SpacesOneLineWhereAsked) {
  JsonWriter json{JsonWriter::Layout::spaced};
  json.begin_object().field("a", 1).key("b").begin_array().value(2).value("c").end_array().end_object();
  EXPECT_EQ(std::move(json).text(), R"({"a": 1, "b": [2, "c"]})");
}

TEST(JsonWriter, WritesWholeNumbersWithoutAnExponent) {
  EXPECT_EQ(written([](JsonWriter& j) { j.value(100000.0); }), "100000");
  EXPECT_EQ(written([](JsonWriter& j) { j.value(-4e14); }), "-400000000000000");
  EXPECT_EQ(written([](JsonWriter& j) { j.value(1e15); }), "1e+15");
}

TEST(JsonWriter, WritesNumbersThatReadBackAsTheSame) {
  EXPECT_EQ(written([](JsonWriter& j) { j.value(0.1); }), "0.1");
  EXPECT_EQ(written([](JsonWriter& j) { j.value(1.0 / 3); }), "0.3333333333333333");
  EXPECT_EQ(written([](JsonWriter& j) { j.value(-0.0); }), "0");
  EXPECT_EQ(written([](JsonWriter& j) { j.value(std::numeric_limits<std::int64_t>::min()); }),
            "-9223372036854775808");
  EXPECT_EQ(written([](JsonWriter& j) { j.value(std::numeric_limits<std::uint64_t>::max()); }),
            "18446744073709551615");
}

TEST(JsonWriter, WritesFixedDecimals) {
  EXPECT_EQ(written([](JsonWriter& j) { j.fixed(1234.5678, 2); }), "1234.57");
  EXPECT_EQ(written([](JsonWriter& j) { j.fixed(-0.0001, 2); }), "0.00");
  EXPECT_EQ(written([](JsonWriter& j) { j.fixed(1e300, 0); }).size(), 301U);
}

TEST(JsonWriter, HasNoNumberForWhatIsNotFinite) {
  EXPECT_EQ(written([](JsonWriter& j) { j.value(std::numeric_limits<double>::infinity()); }), "null");
  EXPECT_EQ(written([](JsonWriter& j) { j.fixed(std::numeric_limits<double>::quiet_NaN(), 3); }), "null");
}

TEST(JsonWriter, EscapesEverythingThatHasToBe) {
  EXPECT_EQ(written([](JsonWriter& j) {
              j.value(std::string_view{"a\"b\\c\n\t\r\x01\x7f", 10});
            }),
            R"("a\"b\\c\n\t\r\u0001\u007f)"
            "\"");
  EXPECT_EQ(written([](JsonWriter& j) { j.value("\xc3\xa9 \xf0\x9f\x98\x80"); }),
            "\"\xc3\xa9 \xf0\x9f\x98\x80\"");
}

TEST(JsonWriter, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(written([](JsonWriter& j) { j.value("\xff\xc0\x80z"); }), "\"\\ufffd\\ufffd\\ufffdz\"");
  EXPECT_EQ(written([](JsonWriter& j) { j.value("\xed\xa0\x80"); }),
            "\"\\ufffd\\ufffd\\ufffd\"");                                     // a surrogate
  EXPECT_EQ(written([](JsonWriter& j) { j.value("\xc3"); }), "\"\\ufffd\"");  // cut off
}

TEST(JsonWriter, WritesAbsentValuesAsNull) {
  EXPECT_EQ(
      written([](JsonWriter& j) {
        j.begin_object().field("a", std::optional<int>{}).field("b", std::optional<double>{2.5}).end_object();
      }),
      R"({"a":null,"b":2.5})");
}

}  // namespace
}  // namespace stepcast::json_writer_test

#include "tests/support/json_schema.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::fixtures::json_schema_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kSchema = R"({
  "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
  "properties": {"name": {"type": "string", "description": "of it"},
                 "n": {"type": ["integer", "null"], "minimum": 1},
                 "source": {"enum": ["measured", "fitted"]},
                 "list": {"type": "array", "items": {"$ref": "#/$defs/item"}},
                 "either": {"anyOf": [{"$ref": "#/$defs/item"}, {"type": "null"}]},
                 "times": {"type": "object", "additionalProperties": {"type": "number"}}},
  "required": ["name"],
  "additionalProperties": false,
  "$defs": {"item": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}})";

TEST(JsonSchema, AcceptsWhatFollowsIt) {
  EXPECT_THAT(violations(kSchema, R"({"name": "a"})"), IsEmpty());
  EXPECT_THAT(violations(kSchema, R"({"name": "a", "n": 2, "source": "fitted", "list": [{"x": 1}, {"x": 2.5}],
                                      "either": null, "times": {"a": 1, "b": 0.5}})"),
              IsEmpty());
}

TEST(JsonSchema, NamesWhatDoesNot) {
  EXPECT_THAT(violations(kSchema, R"({"n": 2})"), ElementsAre("the document: `name` is missing"));
  EXPECT_THAT(violations(kSchema, R"({"name": 3})"), ElementsAre("name: found integer, expected \"string\""));
  EXPECT_THAT(violations(kSchema, R"({"name": "a", "n": 1.5})"),
              ElementsAre("n: found number, expected [\"integer\",\"null\"]"));
  EXPECT_THAT(violations(kSchema, R"({"name": "a", "n": 0})"), ElementsAre("n: found 0, minimum 1"));
  EXPECT_THAT(violations(kSchema, R"({"name": "a", "source": "guessed"})"),
              ElementsAre("source: found \"guessed\", expected one of [\"measured\",\"fitted\"]"));
  EXPECT_THAT(violations(kSchema, R"({"name": "a", "list": [{"x": 1}, {}]})"),
              ElementsAre("list[1]: `x` is missing"));
  EXPECT_THAT(violations(kSchema, R"({"name": "a", "either": {}})"),
              ElementsAre("either: fits none of the possibilities"));
  EXPECT_THAT(violations(kSchema, R"({"name": "a", "times": {"b": "1"}})"),
              ElementsAre("times.b: found string, expected \"number\""));
  EXPECT_THAT(violations(kSchema, R"({"name": "a", "more": 1})"), ElementsAre("more: is not allowed"));
}

TEST(JsonSchema, RefusesKeywordsItDoesNotUnderstand) {
  EXPECT_THAT(violations(R"({"pattern": "a+"})", R"({})"),
              ElementsAre("the document: the schema uses `pattern`, which is not understood here"));
  EXPECT_THAT(violations(R"({"$ref": "#/$defs/none"})", "{}"),
              ElementsAre("the document: the schema has no #/$defs/none"));
}

}  // namespace
}  // namespace stepcast::fixtures::json_schema_test

#include "stepcast/base/yaml_document.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::yaml_document_test {
namespace {

using ::testing::HasSubstr;

JsonValue tree_of(std::string_view text) {
  auto tree = parse_yaml(text, "a.yaml");
  EXPECT_TRUE(tree.ok()) << tree.error().message();
  return tree.ok() ? std::move(*tree) : JsonValue{};
}

std::string error_of(std::string_view text) {
  const auto tree = parse_yaml(text, "a.yaml");
  return tree.ok() ? "no error" : tree.error().message();
}

TEST(YamlDocument, GivesPlainWordsTheirKind) {
  EXPECT_EQ(
      compact_json(tree_of("a: 1\nb: 2e-5\nc: yes\nd: False\ne:\nf: '1'\ng: [x, -1, +2]\nh: 1_000\ni: 8b\n")),
      compact_json(*parse_json(
          R"({"a":1,"b":2e-5,"c":true,"d":false,"e":null,"f":"1","g":["x",-1,2],"h":1000,"i":"8b"})", "")));
}

TEST(YamlDocument, PutsAnchorsInAndMerges) {
  const JsonValue tree = tree_of("base: &b {x: 1, y: 2}\nmine:\n  <<: *b\n  y: 3\n");
  EXPECT_EQ(tree.find("mine")->find("x")->number(), 1);
  EXPECT_EQ(tree.find("mine")->find("y")->number(), 3);
}

TEST(YamlDocument, TellsLines) {
  const JsonValue tree = tree_of("# comment\na: 1\nb:\n  c: 2\n");
  EXPECT_EQ(tree.find("b")->find("c")->line(), 4U);
  EXPECT_THAT(error_of("a: 1\nb: [1, 2\nc: 3\n"), HasSubstr("a.yaml: line "));
  EXPECT_THAT(error_of("a: 1\n? [x]\n: 1\n"), HasSubstr("line 2: a key that is not a word"));
}

TEST(YamlDocument, HoldsItsLimits) {
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "[";
  EXPECT_THAT(error_of(deep + std::string(40, ']')), HasSubstr("too deeply nested"));
  EXPECT_THAT(error_of("a: &a [1, *a]"), HasSubstr("a.yaml"));  // holds itself
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += before + ", ";
    bomb += "x]\n";
  }
  EXPECT_THAT(error_of(bomb), HasSubstr("too many values"));
  EXPECT_THAT(error_of(std::string(std::size_t{1} << 21, 'a')), HasSubstr("too large"));
}

TEST(YamlScalars, FlattensATree) {
  const YamlScalars yaml = yaml_scalars(tree_of("a:\n  b: 1\n  c:\n    d: 'x'\ne: null\nf: [1, 2]\n"));
  EXPECT_EQ(yaml.at("a.b"), "1");
  EXPECT_EQ(yaml.at("a.c.d"), "x");
  EXPECT_EQ(yaml.at("e"), "null");
  EXPECT_EQ(yaml.size(), 4U);
}

}  // namespace
}  // namespace stepcast::yaml_document_test

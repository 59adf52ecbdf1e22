#include "stepcast/base/object_reader.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace stepcast::object_reader_test {
namespace {

const std::string kFile = "my.json";

JsonValue tree(std::string_view text) {
  auto root = parse_json(text, kFile);
  EXPECT_TRUE(root.ok()) << root.error().message();
  return *std::move(root);
}

std::string message_of(const Status& status) { return status.ok() ? "no error" : status.error().message(); }

TEST(ObjectReader, TakesWhatIsThereAndLeavesTheRest) {
  const JsonValue root = tree(R"({"s": "x", "l": ["a", "b"], "t": true, "d": 2.5, "n": 7, "c": 3})");
  auto o = ObjectReader::of(root, "", kFile);
  ASSERT_TRUE(o.ok());
  std::string s = "before", other = "kept";
  std::vector<std::string> list;
  bool truth = false;
  double d = 0;
  std::optional<double> there, missing;
  std::int64_t n = 0;
  std::uint32_t c = 0;
  EXPECT_TRUE(o->optional("s", s).ok() && o->optional("absent", other).ok() && o->optional("l", list).ok());
  EXPECT_TRUE(o->optional("t", truth).ok() && o->optional("d", d).ok() && o->optional("n", n).ok());
  EXPECT_TRUE(o->count("c", 1, 4U, c).ok() && o->optional("d", there).ok() &&
              o->optional("gone", missing).ok());
  EXPECT_TRUE(o->finish().ok());
  EXPECT_EQ(s, "x");
  EXPECT_EQ(other, "kept");
  EXPECT_EQ(list, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(truth);
  EXPECT_EQ(d, 2.5);
  EXPECT_EQ(there, 2.5);
  EXPECT_EQ(missing, std::nullopt);
  EXPECT_EQ(n, 7);
  EXPECT_EQ(c, 3U);
}

TEST(ObjectReader, ErrorsSayFileLineAndPath) {
  const JsonValue root = tree("{\n\"name\": 3,\n\"n\": 2.5, \"c\": 9,\n\"nmae\": 1}");
  auto o = ObjectReader::of(root, "device", kFile);
  ASSERT_TRUE(o.ok());
  std::string name;
  std::int64_t n = 0;
  std::uint32_t c = 0;
  EXPECT_EQ(message_of(o->optional("name", name)), "my.json: line 2: device.name: found 3, expected a text");
  EXPECT_EQ(message_of(o->optional("n", n)),
            "my.json: line 3: device.n: found 2.5, expected a whole number from 0 to 1e12");
  EXPECT_EQ(message_of(o->count("c", 1, 8U, c)),
            "my.json: line 3: device.c: found 9, expected a whole number from 1 to 8");
  EXPECT_EQ(message_of(o->required("size", n)),
            "my.json: line 1: device: `device.size` is missing, expected a whole number");
  EXPECT_EQ(message_of(o->finish()), "my.json: line 4: device.nmae: unknown key; did you mean `name`?");
  const auto none = ObjectReader::of(tree("[1]"), "", kFile);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message(), "my.json: line 1: found a list, expected an object");
}

TEST(ObjectReader, NullIsAbsentOnlyWhereAskedFor) {
  const JsonValue root = tree(R"({"s": null, "below": {"x": null, "y": 1}})");
  std::string s = "kept";
  auto strict = ObjectReader::of(root, "", kFile);
  ASSERT_TRUE(strict.ok());
  EXPECT_TRUE(strict->has("s"));
  EXPECT_EQ(message_of(strict->optional("s", s)), "my.json: line 1: s: found null, expected a text");

  auto lenient = ObjectReader::of(root, "", kFile, NullMeans::absent, "ask its author");
  ASSERT_TRUE(lenient.ok());
  EXPECT_FALSE(lenient->has("s"));
  EXPECT_TRUE(lenient->optional("s", s).ok());
  EXPECT_EQ(s, "kept");
  auto below = lenient->section("below");
  ASSERT_TRUE(below.ok() && *below);
  EXPECT_EQ((*below)->left(), std::vector<std::string>{"y"});
  EXPECT_EQ(message_of((*below)->finish()), "my.json: line 1: below.y: unknown key; ask its author");
  (*below)->ignore("other y");
  EXPECT_TRUE((*below)->finish().ok());
  EXPECT_TRUE(lenient->finish().ok());
}

}  // namespace
}  // namespace stepcast::object_reader_test

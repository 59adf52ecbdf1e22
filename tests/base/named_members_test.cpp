#include "stepcast/base/named_members.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/json_value.h"

namespace stepcast::named_members_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum class Colour : std::uint8_t { red, blue };
std::string_view to_string(Colour colour) { return colour == Colour::blue ? "blue" : "red"; }

struct Brick {
  std::int64_t length = 3;
  bool hollow = false;
  Colour colour = Colour::red;
  std::string_view label{};
  double not_listed = 0;
};
STEPCAST_MEMBERS(kBrick, &Brick::length, &Brick::hollow, &Brick::colour, &Brick::label);

// What read_members() makes of a text, which has to live as long.
Result<Brick> read(const JsonValue& value) {
  static const std::string file = "bricks.json";
  STEPCAST_ASSIGN(ObjectReader keys, ObjectReader::of(value, "", file));
  Brick brick;
  STEPCAST_TRY(read_members(keys, kBrick, brick));
  STEPCAST_TRY(keys.finish());
  return brick;
}

TEST(NamedMembers, GoByTheirNames) {
  std::vector<std::string> names;
  kBrick.each_named([&](std::string_view name, auto /*member*/) { names.emplace_back(name); });
  EXPECT_THAT(names, ElementsAre("length", "hollow", "colour", "label"));
}

TEST(NamedMembers, AreReadAndStayWhereNoKeyIs) {
  const Result<JsonValue> json =
      parse_json(R"({"hollow": true, "colour": "blue", "label": "B"})", "bricks.json");
  ASSERT_TRUE(json.ok());
  const Result<Brick> brick = read(*json);
  ASSERT_TRUE(brick.ok()) << brick.error().message();
  EXPECT_EQ(brick->length, 3);
  EXPECT_TRUE(brick->hollow);
  EXPECT_EQ(brick->colour, Colour::blue);
  EXPECT_EQ(brick->label, "B");
}

TEST(NamedMembers, RefuseWhatTheyCannotHold) {
  const std::pair<const char*, const char*> wrong[] = {{R"({"colour": "green"})", "unknown word"},
                                                       {R"({"label": 4})", "expected a text"},
                                                       {R"({"length": "long", "colour": "green"})", "length"},
                                                       {R"({"not_listed": 1})", "not_listed"}};
  for (const auto& [text, message] : wrong) {
    const Result<JsonValue> json = parse_json(text, "bricks.json");
    ASSERT_TRUE(json.ok());
    const Result<Brick> brick = read(*json);
    ASSERT_FALSE(brick.ok()) << text;
    EXPECT_THAT(brick.error().message(), HasSubstr(message));
  }
}

TEST(NamedMembers, ValuesOfEnumerationsGoByTheirWords) {
  EXPECT_EQ(value_named<Colour>("blue"), Colour::blue);
  EXPECT_EQ(value_named<Colour>("green"), std::nullopt);
}

}  // namespace
}  // namespace stepcast::named_members_test

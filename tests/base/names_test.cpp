#include "stepcast/base/names.h"

#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

namespace stepcast::names_test {
namespace {

enum class Color : std::uint8_t { red, green, blue };
constexpr auto kNames = names<Color>({{Color::red, "red"}, {Color::green, "green"}, {Color::blue, "blue"}});

// Both ways while compiling; a table in another order does not compile.
static_assert(kNames[Color::green] == "green");
static_assert(kNames.find("blue") == Color::blue);
static_assert(names<Color::blue>({"red", "green", "blue"}).entries == kNames.entries);

TEST(Names, GoBothWays) {
  for (const auto& [value, name] : kNames.entries) {
    EXPECT_EQ(kNames[value], name);
    EXPECT_EQ(kNames.find(name), value);
  }
  EXPECT_EQ(kNames.find("Red"), std::nullopt);
  EXPECT_EQ(kNames.find(""), std::nullopt);
}

TEST(Names, OfAValueOutsideIsTheFirst) { EXPECT_EQ(kNames[static_cast<Color>(7)], "red"); }

}  // namespace
}  // namespace stepcast::names_test

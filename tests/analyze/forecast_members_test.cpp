// Members of a collective in a forecast: a list, wherever its memory is.
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

#include "stepcast/analyze/forecast.h"

namespace stepcast::forecast_members_test {
namespace {

ForecastMembers of(std::uint32_t n) {
  ForecastMembers members;
  for (std::uint32_t i = 0; i < n; ++i) members.push_back({.rank_class = i, .arrival_us = 10.0 * i});
  return members;
}

TEST(ForecastMembers, HoldsAnyNumber) {
  for (std::uint32_t n = 0; n < 6; ++n) {
    const ForecastMembers members = of(n);
    EXPECT_EQ(members.size(), n);
    EXPECT_EQ(members.empty(), n == 0);
    std::uint32_t i = 0;
    for (const ForecastMember& member : members) EXPECT_EQ(member.rank_class, i++);
    EXPECT_EQ(i, n);
    if (n > 0) {
      EXPECT_EQ(members.front().rank_class, 0U);
      EXPECT_EQ(members[n - 1].arrival_us, 10.0 * (n - 1));
    }
  }
}

TEST(ForecastMembers, AreEqualWhereTheirMembersAre) {
  EXPECT_EQ(of(2), of(2));
  EXPECT_EQ(of(4), of(4));
  EXPECT_FALSE(of(2) == of(3));
  ForecastMembers other = of(3);
  other[1].wait_us = 1;
  EXPECT_FALSE(other == of(3));
}

TEST(ForecastMembers, MoveAndCopy) {
  for (const std::uint32_t n : {1U, 5U}) {
    ForecastMembers first = of(n);
    const ForecastMembers copy = first;
    const ForecastMembers moved = std::move(first);
    EXPECT_EQ(copy, of(n));
    EXPECT_EQ(moved, of(n));
  }
}

}  // namespace
}  // namespace stepcast::forecast_members_test

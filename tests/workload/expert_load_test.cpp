#include "stepcast/workload/expert_load.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

double busiest(const char* text, std::int64_t experts, std::int64_t ranks) {
  const Result<ExpertLoad> load = parse_expert_load(text);
  EXPECT_TRUE(load.ok()) << text;
  return busiest_over_mean(*load, experts, ranks, 4096);
}

TEST(ExpertLoad, BalancedRanksAreTheMean) { EXPECT_DOUBLE_EQ(busiest("balanced", 128, 8), 1); }

TEST(ExpertLoad, MeasuredLoadsAreSummedByRank) {
  // Ranks of two experts: 3 and 5 of 8, mean 4.
  EXPECT_DOUBLE_EQ(busiest("1,2,4,1", 4, 2), 1.25);
  EXPECT_DOUBLE_EQ(busiest("1,2,4,1", 4, 4), 2);
  EXPECT_DOUBLE_EQ(busiest("1,2,4,1", 4, 1), 1);
}

TEST(ExpertLoad, PowerLawsHurtMoreOnMoreRanks) {
  const double few = busiest("power-law:1.2", 128, 4), many = busiest("power-law:1.2", 128, 32);
  EXPECT_GT(few, 1.05);
  EXPECT_GT(many, few);
  EXPECT_LT(many, 32);
  EXPECT_DOUBLE_EQ(many, busiest("power-law:1.2", 128, 32));  // the same draws
}

TEST(ExpertLoad, RefusesWhatIsNoLoad) {
  for (const char* text :
       {"", "even", "power-law:", "power-law:0", "power-law:9", "1,x", "0,0", "3", "1,-2"}) {
    EXPECT_FALSE(parse_expert_load(text).ok()) << text;
  }
}

}  // namespace
}  // namespace stepcast

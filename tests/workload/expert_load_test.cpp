#include "stepcast/workload/expert_load.h"

#include <gtest/gtest.h>

namespace stepcast::expert_load_test {
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

// Three experts at most 1.5 times the mean of 2: 1, 2, 3, 2 of 8 kept; ranks of two have 3 and 4.
TEST(ExpertLoad, CapacityCutsWhatAnExpertKeeps) {
  const ExpertLoad load = parse_expert_load("1,2,4,1").value();
  EXPECT_DOUBLE_EQ(busiest_over_mean(load, 4, 2, 4096, 1.5), (3.0 + 1.0) / 4);
  EXPECT_DOUBLE_EQ(busiest_over_mean(load, 4, 4, 4096, 1.5), 1.5);
  EXPECT_DOUBLE_EQ(busiest_over_mean({}, 4, 4, 4096, 1.25), 1);
}

TEST(ExpertLoad, FilesHaveALinePerExpert) {
  const std::vector<double> visits = {10, 30, 20};
  for (const char* text : {"10\n30\n20\n", "expert,visits\n0,10\n2,20\n1,30\n", "# step 900\n10\n\n30\r\n20",
                           "0 10\n1\t30\n2 20"}) {
    const Result<ExpertLoad> load = parse_expert_load_file(text, "loads.csv");
    ASSERT_TRUE(load.ok()) << text << load.error().message();
    EXPECT_EQ(load->visits, visits) << text;
  }
}

TEST(ExpertLoad, FilesNameTheirBadLine) {
  const struct {
    const char *text, *says;
  } cases[] = {
      {"10\nx\n", "line 2"},        {"0,10\n1\n", "line 2"}, {"0,10\n0,20\n", "expert 0 occurs twice"},
      {"0,10\n2,20\n", "expert 1"}, {"", "0 loads"},         {"expert,load\n", "0 loads"},
      {"0,-1\n1,2\n", "line 1"},    {"9e9,1\n", "line 1"},   {"1,2,3\n", "line 1"}};
  for (const auto& bad : cases) {
    const Result<ExpertLoad> load = parse_expert_load_file(bad.text, "loads.csv");
    ASSERT_FALSE(load.ok()) << bad.text;
    EXPECT_NE(load.error().message().find(bad.says), std::string::npos) << load.error().message();
  }
}

TEST(ExpertLoad, LoadsHaveToAddUp) {
  const auto message = [](const char* text, std::int64_t experts, std::int64_t top_k) {
    const Status status = check(parse_expert_load(text).value(), experts, top_k);
    return status.ok() ? std::string{} : status.error().message();
  };
  EXPECT_EQ(message("0.25,0.3,0.2,0.25", 4, 2), "");  // shares
  EXPECT_EQ(message("25,30,20,25", 4, 2), "");        // percent
  EXPECT_EQ(message("1,1.2,0.8,1", 4, 2), "");        // multiples of the mean
  EXPECT_EQ(message("1000,1200,900,900", 4, 2), "");  // visits of 2,000 tokens
  EXPECT_NE(message("0.25,0.3,0.2,0.2", 4, 2).find("a sum of 0.95"), std::string::npos);
  EXPECT_NE(message("1000,1200,900,901", 4, 2).find("multiple of the 2 experts"), std::string::npos);
  EXPECT_NE(message("1000,1200,900", 4, 2).find("one for each of 4 experts"), std::string::npos);
  EXPECT_NE(message("0.7,0.1,0.1,0.1", 4, 2).find("at most 50.0 %"), std::string::npos);
  EXPECT_EQ(message("power-law:1.2", 4, 2), "");
}

TEST(ExpertLoad, RefusesWhatIsNoLoad) {
  for (const char* text :
       {"", "even", "power-law:", "power-law:0", "power-law:9", "1,x", "0,0", "3", "1,-2"}) {
    EXPECT_FALSE(parse_expert_load(text).ok()) << text;
  }
}

}  // namespace
}  // namespace stepcast::expert_load_test

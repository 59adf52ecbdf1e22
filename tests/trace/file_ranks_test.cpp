#include "stepcast/trace/file_ranks.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::file_ranks_test {
namespace {

using ::testing::ElementsAre;

TEST(RankInName, IsTheNumberBehindTheWordOrTheLastShortOne) {
  EXPECT_EQ(rank_in_name("kineto_rank3.json.gz"), 3);
  EXPECT_EQ(rank_in_name("rank-70.Mar_25_20_48_12.2861.pt.trace.json.gz"), 70);
  EXPECT_EQ(rank_in_name("worker0.1623143089861.pt.trace.json.gz"), 0);
  EXPECT_EQ(rank_in_name("dlrm_eg_5.json"), 5);
  EXPECT_EQ(rank_in_name("RANK=12.json"), 12);
  EXPECT_EQ(rank_in_name("vgg13.json.gz"), std::nullopt);           // part of a word
  EXPECT_EQ(rank_in_name("model__1016002.json.gz"), std::nullopt);  // too long for a rank
  EXPECT_EQ(rank_in_name("rank_non_gpu.json"), std::nullopt);
}

TEST(RankByPattern, IsTheNumberAtTheMark) {
  EXPECT_EQ(rank_by_pattern("host12_gpu7.json", "host{}_gpu"), 12);
  EXPECT_EQ(rank_by_pattern("host12_gpu7.json", "gpu{}"), 7);
  EXPECT_EQ(rank_by_pattern("host12_gpu007.json", "gpu{}.json"), 7);
  EXPECT_EQ(rank_by_pattern("gpu_gpu7.json", "gpu{}"), 7);  // the first place with a number
  EXPECT_EQ(rank_by_pattern("12_gpu7.json", "{}_"), 12);
  EXPECT_EQ(rank_by_pattern("host12_gpu7.json", "node{}"), std::nullopt);
  EXPECT_EQ(rank_by_pattern("host12_gpu7.json", "host{}-"), std::nullopt);
  EXPECT_EQ(rank_by_pattern("host99999999999_gpu7.json", "host{}_"), std::nullopt);  // no rank
}

TEST(ParseRanks, ReadsListsAndRanges) {
  EXPECT_THAT(parse_ranks("0,2-5").value(), ElementsAre(0, 2, 3, 4, 5));
  EXPECT_THAT(parse_ranks("7,1,7").value(), ElementsAre(1, 7));
  for (const char* wrong : {"", "a", "3-1", "1,", "1,,2", "-1", "99999999999"}) {
    EXPECT_FALSE(parse_ranks(wrong).ok()) << wrong;
  }
}

TEST(ListRanks, JoinsRuns) {
  EXPECT_EQ(list_ranks(std::vector<std::int32_t>{0, 2, 3, 4, 9}), "0,2-4,9");
  EXPECT_EQ(list_ranks({}), "");
}

}  // namespace
}  // namespace stepcast::file_ranks_test

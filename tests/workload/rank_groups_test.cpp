// Groups of a layout rank by rank, written down by hand and against their placement.
#include "stepcast/workload/rank_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/workload/placement.h"

namespace stepcast::rank_groups_test {
namespace {

using ::testing::ElementsAre;

// 16 ranks: tp 2 fastest, then dp 2, then pp 4.
TEST(RankGroups, AreThoseOfTheRankOrder) {
  Layout layout;
  layout.degrees = {.tensor = 2, .pipeline = 4, .data = 2};
  layout.rank_order = "tp-cp-ep-dp-pp";
  const auto groups = RankGroups::of(layout);
  ASSERT_TRUE(groups.ok()) << groups.error().message();
  EXPECT_EQ(groups->n_ranks(), 16U);
  EXPECT_THAT(groups->stage(0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(groups->stage(3), ElementsAre(12, 13, 14, 15));
  EXPECT_THAT(groups->with(GroupKind::tensor, 5), ElementsAre(4, 5));
  EXPECT_THAT(groups->with(GroupKind::data, 5), ElementsAre(5, 7));
  EXPECT_THAT(groups->with(GroupKind::pipeline, 5), ElementsAre(1, 5, 9, 13));
  EXPECT_THAT(groups->with(GroupKind::embedding, 5), ElementsAre(1, 13));
  EXPECT_THAT(groups->with(GroupKind::context, 5), ElementsAre(5));
}

// Every group has as many ranks as place() says, holds its rank, and is the group of all its ranks.
TEST(RankGroups, HaveTheSizesOfTheirPlacement) {
  Layout layout;
  layout.degrees = {.tensor = 2, .pipeline = 2, .context = 2, .data = 4, .expert = 4};
  layout.rank_order = "tp-cp-ep-dp-pp";
  const auto groups = RankGroups::of(layout);
  ASSERT_TRUE(groups.ok()) << groups.error().message();
  const auto placement = place(layout, 8);
  ASSERT_TRUE(placement.ok()) << placement.error().message();
  const auto expect = [&](GroupKind kind, const GroupPlacement& place) {
    for (std::uint32_t rank = 0; rank < groups->n_ranks(); ++rank) {
      const std::vector<std::uint32_t> group = groups->with(kind, rank);
      EXPECT_EQ(static_cast<std::int64_t>(group.size()), place.n_ranks) << to_string(kind);
      EXPECT_THAT(group, ::testing::Contains(rank)) << to_string(kind);
      for (const std::uint32_t other : group) EXPECT_EQ(groups->with(kind, other), group) << to_string(kind);
    }
  };
  expect(GroupKind::tensor, placement->tensor);
  expect(GroupKind::context, placement->context);
  expect(GroupKind::data, placement->data_context);
  expect(GroupKind::expert, placement->expert);
  expect(GroupKind::expert_data, placement->expert_data);
  expect(GroupKind::pipeline, placement->pipeline);
  expect(GroupKind::shard, placement->shard);
  expect(GroupKind::replicate, placement->replicate);
}

}  // namespace
}  // namespace stepcast::rank_groups_test

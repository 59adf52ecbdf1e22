#include "stepcast/platform/group_placement.h"

#include <vector>

#include <gtest/gtest.h>

namespace stepcast::group_placement_test {
namespace {

using Groups = std::vector<std::vector<std::uint32_t>>;

std::vector<RankSpan> spans(const Groups& groups) { return {groups.begin(), groups.end()}; }

// Nodes of 4: {0, 1} lies on node 0 beside {2, 3}; {4, 5} on node 1.
TEST(PlaceRanks, OnOneNode) {
  const Groups groups{{0, 1}, {2, 3}, {4, 5}};
  const GroupPlacement place = place_ranks(groups[0], 4, spans(groups));
  EXPECT_EQ(
      place,
      (GroupPlacement{
          .n_ranks = 2, .n_nodes = 1, .ranks_per_node = 2, .min_ranks_per_node = 2, .groups_per_node = 2}));
}

// Nodes of 4: {1, 5} and {2, 6} cross nodes at the same places; {0, 3} does not leave its node and does not
// share the network with them.
TEST(PlaceRanks, AcrossNodes) {
  const Groups groups{{5, 1}, {2, 6}, {0, 3}};
  const GroupPlacement place = place_ranks(groups[0], 4, spans(groups));
  EXPECT_EQ(place, (GroupPlacement{.n_ranks = 2,
                                   .n_nodes = 2,
                                   .ranks_per_node = 1,
                                   .min_ranks_per_node = 1,
                                   .groups_per_node = 2,
                                   .rail_aligned = true,
                                   .uniform = false}));
  // All three meet on node 0, two of them with half of their ranks.
  EXPECT_EQ(place_ranks(groups[2], 4, spans(groups)).groups_per_node, 2);
}

// Five ranks by two on nodes: the last node holds one, on the rail of another, and half of the next group.
TEST(PlaceGroups, AnOddRankLeavesTheOthersOnTheirRails) {
  const Groups groups{{0, 4, 8, 12, 16}, {20, 24, 28, 32, 36}};
  const GroupPlacement place = place_groups(spans(groups), 8);
  EXPECT_EQ(place.n_nodes, 3);
  EXPECT_EQ(place.ranks_per_node, 2);
  EXPECT_EQ(place.min_ranks_per_node, 1);
  EXPECT_EQ(place.groups_per_node, 1);
  EXPECT_TRUE(place.rail_aligned);
}

// Ranks 2, 3, 4 on nodes of 4: two on node 0, one on node 1, at another place.
TEST(PlaceRanks, UnevenNodes) {
  const Groups groups{{2, 3, 4}};
  const GroupPlacement place = place_ranks(groups[0], 4, spans(groups));
  EXPECT_EQ(place.n_nodes, 2);
  EXPECT_EQ(place.ranks_per_node, 2);
  EXPECT_EQ(place.min_ranks_per_node, 1);
  EXPECT_FALSE(place.rail_aligned);
  EXPECT_TRUE(place.uniform);
}

TEST(PlaceGroups, StandsForTheGroupOverMostNodes) {
  const Groups groups{{0, 1}, {3, 4}};
  const GroupPlacement place = place_groups(spans(groups), 4);
  EXPECT_EQ(place.n_nodes, 2);
  EXPECT_EQ(place.groups_per_node, 1);
  EXPECT_FALSE(place.rail_aligned);
  EXPECT_FALSE(place.uniform);
}

TEST(PlaceGroups, NobodyIsOneRank) {
  EXPECT_EQ(place_groups({}, 8), GroupPlacement{});
  EXPECT_EQ(place_ranks({}, 8, {}), GroupPlacement{});
}

}  // namespace
}  // namespace stepcast::group_placement_test

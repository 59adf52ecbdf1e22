// place() against groups that are found rank by rank.
#include "stepcast/workload/placement.h"

#include <functional>
#include <map>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::placement_test {
namespace {

using ::testing::HasSubstr;

// Places of one rank, written down independently of the library: digits in the given order.
std::map<std::string, std::int64_t> places(std::int64_t rank,
                                           const std::vector<std::pair<std::string, std::int64_t>>& order) {
  std::map<std::string, std::int64_t> result;
  for (const auto& [name, size] : order) {
    result[name] = rank % size;
    rank /= size;
  }
  return result;
}

void expect_same(const GroupPlacement& got, const GroupPlacement& want, const std::string& what);

// Groups of recorded ranks are placed by place_ranks() and place_groups(): the same as those of a layout.
void expect_same_of_recorded_ranks(const std::vector<std::vector<std::uint32_t>>& groups,
                                   std::int64_t gpus_per_node, const GroupPlacement& want) {
  const std::vector<RankSpan> spans{groups.begin(), groups.end()};
  expect_same(place_groups(spans, gpus_per_node), want, "recorded groups");
  if (want.uniform) expect_same(place_ranks(spans.back(), gpus_per_node, spans), want, "recorded ranks");
}

// What a group looks like when all ranks are asked. `key` of ranks of one group is equal.
GroupPlacement by_hand(std::int64_t world, std::int64_t gpus_per_node,
                       const std::function<std::vector<std::int64_t>(std::int64_t)>& key) {
  std::map<std::vector<std::int64_t>, std::map<std::int64_t, std::set<std::int64_t>>>
      groups;  // key, node, place
  std::map<std::vector<std::int64_t>, std::vector<std::uint32_t>> ranks_of;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    const auto k = key(rank);
    if (k.empty()) continue;
    groups[k][rank / gpus_per_node].insert(rank % gpus_per_node);
    ranks_of[k].push_back(static_cast<std::uint32_t>(rank));
  }
  std::vector<GroupPlacement> all;
  std::map<std::int64_t, std::int64_t> all_on_node, spread_on_node;  // ranks
  for (const auto& [k, nodes] : groups) {
    GroupPlacement g{.n_ranks = 0, .n_nodes = static_cast<std::int64_t>(nodes.size()), .ranks_per_node = 0};
    g.min_ranks_per_node = 1 << 20;
    for (const auto& [node, local] : nodes) {
      const auto n = static_cast<std::int64_t>(local.size());
      g.n_ranks += n;
      g.ranks_per_node = std::max(g.ranks_per_node, n);
      g.min_ranks_per_node = std::min(g.min_ranks_per_node, n);
      all_on_node[node] += n;
      if (nodes.size() > 1) spread_on_node[node] += n;
    }
    const auto fullest = std::max_element(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
    for (const auto& [node, local] : nodes) {
      const std::set<std::int64_t>& most = fullest->second;
      if (!std::includes(most.begin(), most.end(), local.begin(), local.end())) g.rail_aligned = false;
    }
    all.push_back(g);
  }
  GroupPlacement worst = all.front();
  for (const GroupPlacement& g : all) {
    if (std::pair{g.n_nodes, -g.min_ranks_per_node} > std::pair{worst.n_nodes, -worst.min_ranks_per_node})
      worst = g;
  }
  bool aligned = true, uniform = true;
  for (const GroupPlacement& g : all) {
    aligned = aligned && g.rail_aligned;
    uniform = uniform && g == worst;
  }
  worst.rail_aligned = aligned;
  worst.uniform = uniform;
  worst.groups_per_node = 0;
  for (const auto& [node, n] : worst.n_nodes > 1 ? spread_on_node : all_on_node) {
    worst.groups_per_node =
        std::max(worst.groups_per_node, (n + worst.ranks_per_node - 1) / worst.ranks_per_node);
  }
  std::vector<std::vector<std::uint32_t>> recorded;
  for (const auto& [k, ranks] : ranks_of) recorded.push_back(ranks);
  expect_same_of_recorded_ranks(recorded, gpus_per_node, worst);
  return worst;
}

void expect_same(const GroupPlacement& got, const GroupPlacement& want, const std::string& what) {
  EXPECT_EQ(got.n_ranks, want.n_ranks) << what;
  EXPECT_EQ(got.n_nodes, want.n_nodes) << what;
  EXPECT_EQ(got.ranks_per_node, want.ranks_per_node) << what;
  EXPECT_EQ(got.min_ranks_per_node, want.min_ranks_per_node) << what;
  EXPECT_EQ(got.groups_per_node, want.groups_per_node) << what;
  EXPECT_EQ(got.rail_aligned, want.rail_aligned) << what;
  EXPECT_EQ(got.uniform, want.uniform) << what;
}

void compare_with_ranks(const Layout& layout, std::int64_t gpus_per_node) {
  const auto placement = place(layout, gpus_per_node);
  ASSERT_TRUE(placement.ok()) << placement.error().message();
  std::vector<std::pair<std::string, std::int64_t>> dense, experts;
  std::string rest = layout.rank_order + "-";
  for (std::size_t end = rest.find('-'); end != std::string::npos; end = rest.find('-')) {
    const std::string name = rest.substr(0, end);
    rest.erase(0, end + 1);
    if (name == "tp") {
      dense.emplace_back(name, layout.degrees.tensor);
      experts.emplace_back(name, layout.expert_tensor_degree());
    } else if (name == "cp") {
      dense.emplace_back(name, layout.degrees.context);
    } else if (name == "dp") {
      dense.emplace_back(name, layout.degrees.data);
      experts.emplace_back(name, layout.expert_data_parallel());
    } else if (name == "pp") {
      dense.emplace_back(name, layout.degrees.pipeline);
      experts.emplace_back(name, layout.degrees.pipeline);
    } else {
      experts.emplace_back(name, layout.degrees.expert);
    }
  }
  const std::int64_t world = layout.world_size();
  // Ranks whose places agree in everything but `free` are a group.
  const auto groups_along = [&](const std::vector<std::pair<std::string, std::int64_t>>& order,
                                const std::set<std::string>& free) {
    return by_hand(world, gpus_per_node, [&](std::int64_t rank) {
      std::vector<std::int64_t> key{1};
      for (const auto& [name, place] : places(rank, order)) {
        if (!free.contains(name)) key.push_back(place);
      }
      return key;
    });
  };
  const std::string what =
      layout.rank_order + " tp" + std::to_string(layout.degrees.tensor) + " cp" +
      std::to_string(layout.degrees.context) + " dp" + std::to_string(layout.degrees.data) + " pp" +
      std::to_string(layout.degrees.pipeline) + " ep" + std::to_string(layout.degrees.expert) + " nodes of " +
      std::to_string(gpus_per_node) + " ";
  expect_same(placement->tensor, groups_along(dense, {"tp"}), what + "tensor");
  expect_same(placement->context, groups_along(dense, {"cp"}), what + "context");
  expect_same(placement->data, groups_along(dense, {"dp"}), what + "data");
  expect_same(placement->data_context, groups_along(dense, {"cp", "dp"}), what + "data_context");
  expect_same(placement->pipeline, groups_along(dense, {"pp"}), what + "pipeline");
  expect_same(placement->model, groups_along(dense, {"tp", "pp"}), what + "model");
  expect_same(placement->world, groups_along(dense, {"tp", "cp", "dp", "pp"}), what + "world");
  expect_same(placement->expert, groups_along(experts, {"ep"}), what + "expert");
  expect_same(placement->expert_tensor, groups_along(experts, {"tp"}), what + "expert_tensor");
  expect_same(placement->expert_data, groups_along(experts, {"dp"}), what + "expert_data");

  const auto pair = [&](std::int64_t from, std::int64_t to) {
    return by_hand(world, gpus_per_node, [&](std::int64_t rank) {
      auto digits = places(rank, dense);
      if (digits["pp"] != from && digits["pp"] != to) return std::vector<std::int64_t>{};
      digits["pp"] = 0;
      std::vector<std::int64_t> key;
      for (const auto& [name, place] : digits) key.push_back(place);
      return key;
    });
  };
  const std::int64_t pp = layout.degrees.pipeline;
  if (pp == 1) {
    EXPECT_TRUE(placement->boundaries.empty());
    return;
  }
  ASSERT_EQ(placement->boundaries.size(), static_cast<std::size_t>(pp));
  for (std::int64_t i = 0; i < pp; ++i) {
    expect_same(placement->boundaries[static_cast<std::size_t>(i)], pair(i, (i + 1) % pp),
                what + "boundary " + std::to_string(i));
  }
  expect_same(placement->embedding, pair(0, pp - 1), what + "embedding");
}

TEST(Placement, AgreesWithEveryRankOfRandomLayouts) {
  std::mt19937 random{20260101};
  const auto pick = [&random](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + std::uniform_int_distribution<std::ptrdiff_t>(
                                  0, static_cast<std::ptrdiff_t>(values.size()) - 1)(random));
  };
  const std::vector<std::string> orders{"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "tp-ep-dp-cp-pp",
                                        "pp-tp-cp-ep-dp", "dp-cp-tp-ep-pp"};
  int compared = 0;
  for (int i = 0; i < 500; ++i) {
    Layout layout{.degrees = {.tensor = pick({1, 2, 4, 8, 3}),
                              .pipeline = pick({1, 2, 4, 5, 8}),
                              .context = pick({1, 1, 2, 4}),
                              .data = pick({1, 2, 3, 4, 8, 12, 16, 24, 36})}};
    if (layout.world_size() > 512) continue;
    layout.rank_order = orders[static_cast<std::size_t>(pick({0, 0, 1, 2, 3, 4}))];
    if (layout.rank_order.ends_with("pp")) {
      layout.degrees.expert = pick({1, 2, 4});
      layout.degrees.expert_tensor = pick({0, 1});
      const std::int64_t stage = layout.degrees.tensor * layout.degrees.context * layout.degrees.data;
      if (stage % (layout.degrees.expert * layout.expert_tensor_degree()) != 0) layout.degrees.expert = 1;
    } else if (layout.degrees.context > 1) {
      layout.degrees.context = 1;
    }
    compare_with_ranks(layout, pick({1, 4, 8, 16, 72, 6}));
    ++compared;
    if (::testing::Test::HasFailure()) return;  // one layout says enough
  }
  EXPECT_GT(compared, 300);
}

TEST(Placement, PutsTensorParallelismOnOneNode) {
  const Layout layout{.degrees = {.tensor = 8, .pipeline = 16, .data = 4}};
  const auto placement = place(layout, 8);
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->n_nodes, 64);
  EXPECT_EQ(placement->tensor,
            (GroupPlacement{.n_ranks = 8, .n_nodes = 1, .ranks_per_node = 8, .min_ranks_per_node = 8}));
  EXPECT_EQ(placement->data.n_nodes, 4);
  EXPECT_EQ(placement->data.ranks_per_node, 1);
  EXPECT_EQ(placement->data.groups_per_node, 8);
  EXPECT_TRUE(placement->data.rail_aligned);
  ASSERT_EQ(placement->boundaries.size(), 16u);
  EXPECT_EQ(placement->boundaries[3].n_nodes, 2);
  EXPECT_EQ(placement->boundaries[3].groups_per_node, 8);
}

TEST(Placement, CutsHybridShardGroups) {
  Layout layout{.degrees = {.data = 32}, .sharding = {.kind = Sharding::zero3}};
  layout.sharding.shard_group_size = 8;
  const auto placement = place(layout, 8);
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->shard.n_ranks, 8);
  EXPECT_EQ(placement->shard.n_nodes, 1);
  EXPECT_EQ(placement->replicate.n_ranks, 4);
  EXPECT_EQ(placement->replicate.n_nodes, 4);
  EXPECT_EQ(placement->replicate.groups_per_node, 8);
  EXPECT_EQ(placement->data.n_ranks, 32);

  // Context-parallel ranks come first: four of them and two data-parallel ones make a shard group.
  layout.degrees.context = 4;
  const auto with_context = place(layout, 8);
  ASSERT_TRUE(with_context.ok());
  EXPECT_EQ(with_context->shard.n_ranks, 8);
  EXPECT_EQ(with_context->shard.n_nodes, 1);
  EXPECT_EQ(with_context->replicate.n_ranks, 16);

  layout.sharding.shard_group_size = 6;
  const auto refused = place(layout, 8);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("shard_group_size"));
}

TEST(Placement, RefusesOrdersThatMakeNoSense) {
  Layout layout{.degrees = {.tensor = 2, .pipeline = 2, .context = 2}};
  for (const char* order :
       {"tp-cp", "tp-cp-ep-dp-pp-", "tp-cp-ep-dp-xx", "tp-tp-cp-dp-pp", "-", "tp--pp", ""}) {
    layout.rank_order = order;
    EXPECT_FALSE(place(layout, 8).ok()) << order;
  }
  layout.rank_order = "tp-cp-pp";  // degrees of 1 may be left out
  EXPECT_TRUE(place(layout, 8).ok());
  EXPECT_FALSE(place(layout, 0).ok());
  // Experts over 2 x 2 ranks while the others of a stage are 2 x 2 x 1: pp behind dp lands elsewhere.
  layout = {.degrees = {.tensor = 2, .pipeline = 2, .data = 4, .expert = 2}, .rank_order = "tp-cp-ep-pp-dp"};
  const auto refused = place(layout, 8);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("put pp last"));
}

TEST(Placement, IsQuickForManyRanks) {
  const Layout layout{.degrees = {.tensor = 8, .pipeline = 16, .data = 65536}};
  const auto placement = place(layout, 8);
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->world.n_ranks, 8'388'608);
  const auto refused = place(layout, 7);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("nodes of 7 GPUs"));
  // Nodes cut through groups whose places repeat after a few nodes: as many ranks as one likes.
  Layout odd{.degrees = {.tensor = 5, .pipeline = 16, .data = 1'000'000}};
  const auto cut = place(odd, 8);
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  EXPECT_EQ(cut->n_nodes, 10'000'000);
  EXPECT_EQ(cut->data.n_nodes, 625'000);
  EXPECT_EQ(cut->model.n_ranks, 80);
  odd.degrees.data = 8;  // a stage is five nodes, as before
  const auto small = place(odd, 8);
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(cut->tensor, small->tensor);
  EXPECT_EQ(cut->boundaries, small->boundaries);
  // One node with room for all, whatever its number of places.
  const auto slice = place(layout, 8'960'001);
  ASSERT_TRUE(slice.ok());
  EXPECT_EQ(slice->world.n_nodes, 1);
  EXPECT_EQ(slice->data.ranks_per_node, 65536);
}

TEST(Placement, FillsSegmentsWhereGroupsWouldStraddleWholeNodes) {
  const auto placed = [](std::int64_t tensor, std::int64_t data) {
    Layout layout;
    layout.degrees.tensor = tensor;
    layout.degrees.data = data;
    return *place(layout, 72, 64);
  };
  // 64 ranks fit one rack of 72.
  EXPECT_EQ(placed(8, 8).gpus_per_node, 72);
  EXPECT_EQ(placed(8, 8).world.n_nodes, 1);
  // 128 ranks: 9 of 16 data-parallel ranks in one rack and 7 in the next, or 8 and 8.
  EXPECT_EQ(placed(8, 16).gpus_per_node, 64);
  EXPECT_EQ(placed(8, 16).n_nodes, 2);
  EXPECT_EQ(placed(8, 16).data.ranks_per_node, 8);
  EXPECT_EQ(placed(8, 16).data.min_ranks_per_node, 8);
  EXPECT_EQ(placed(64, 2).tensor.n_nodes, 1);  // on ranks 0 to 63, not over racks
  // 144 ranks as 8 x 18 fill two whole racks: 9 data-parallel ranks each.
  EXPECT_EQ(placed(8, 18).gpus_per_node, 72);
  EXPECT_EQ(placed(8, 18).data.ranks_per_node, 9);
  // 160 ranks as 8 x 20: 64, 64 and 32 of three racks.
  EXPECT_EQ(placed(8, 20).gpus_per_node, 64);
  EXPECT_EQ(placed(8, 20).data.n_nodes, 3);
  EXPECT_EQ(placed(8, 20).data.min_ranks_per_node, 4);
  // Neither fits: as without segments.
  EXPECT_EQ(placed(5, 30).gpus_per_node, 72);
}

}  // namespace
}  // namespace stepcast::placement_test

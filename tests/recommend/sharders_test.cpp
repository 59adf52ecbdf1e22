#include "stepcast/recommend/sharders.h"

#include <cmath>

#include <gtest/gtest.h>

namespace stepcast::sharders_test {
namespace {

Dlrm model_of(std::vector<EmbeddingTable> tables) {
  Dlrm model;
  model.top_mlp = {1};
  for (std::size_t t = 0; t < tables.size(); ++t) tables[t].name = std::to_string(t);
  model.tables = std::move(tables);
  return model;
}
std::vector<std::int32_t> ranks_of(const ShardingPlan& plan) {
  std::vector<std::int32_t> ranks;
  for (const TablePlan& t : plan.tables) ranks.push_back(t.ranks.at(0));
  return ranks;
}
using Ranks = std::vector<std::int32_t>;

TEST(Sharders, HaveTheCostsOfTheirTable) {
  const EmbeddingTable t{.rows = 1000, .dim = 64, .pooling = 20};
  EXPECT_DOUBLE_EQ(sharder_cost(t, Sharder::size), 1000);
  EXPECT_DOUBLE_EQ(sharder_cost(t, Sharder::lookup), 1280);
  EXPECT_DOUBLE_EQ(sharder_cost(t, Sharder::norm_lookup), 0.02);
  EXPECT_DOUBLE_EQ(sharder_cost(t, Sharder::size_lookup), 1280 * 3);
}

TEST(Sharders, NaiveGoesRoundAndRandomDependsOnItsSeed) {
  const Dlrm model = model_of(std::vector<EmbeddingTable>(12, {.rows = 10, .dim = 16}));
  EXPECT_EQ(ranks_of(shard(model, 5, Sharder::naive)), (Ranks{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1}));
  EXPECT_EQ(shard(model, 5, Sharder::random, {.seed = 3}), shard(model, 5, Sharder::random, {.seed = 3}));
  EXPECT_NE(shard(model, 5, Sharder::random, {.seed = 3}), shard(model, 5, Sharder::random, {.seed = 4}));
}

// Costs 8, 7, 6, 5, 4 (pooling, dim 1): 8 to rank 0, 7 to rank 1, 6 to rank 1 (13), 5 to rank 0 (13), a tie at 13:
// the rank with less memory.
TEST(Sharders, GreedyTakesTheLeastLoadedRank) {
  const Dlrm model = model_of({{.rows = 10, .dim = 1, .pooling = 4},
                               {.rows = 10, .dim = 1, .pooling = 8},
                               {.rows = 20, .dim = 1, .pooling = 7},
                               {.rows = 10, .dim = 1, .pooling = 6},
                               {.rows = 10, .dim = 1, .pooling = 5}});
  EXPECT_EQ(ranks_of(shard(model, 2, Sharder::lookup)), (Ranks{0, 0, 1, 1, 0}));
}

TEST(Sharders, GreedyKeepsTheLimitOfTheMemory) {
  const Dlrm model = model_of({{.rows = 100, .dim = 1, .pooling = 9},
                               {.rows = 100, .dim = 1, .pooling = 1},
                               {.rows = 100, .dim = 1, .pooling = 1}});
  // By cost alone tables 1 and 2 would share rank 1; 400 bytes each and 500 of memory allow one.
  EXPECT_EQ(ranks_of(shard(model, 2, Sharder::lookup)), (Ranks{0, 1, 1}));
  EXPECT_EQ(ranks_of(shard(model, 3, Sharder::lookup, {.memory_bytes = 500})), (Ranks{0, 1, 2}));
}

TEST(Sharders, AreFoundByTheirNames) {
  EXPECT_EQ(parse_sharder("size-lookup"), Sharder::size_lookup);
  EXPECT_EQ(parse_sharder("norm_lookup_greedy"), Sharder::norm_lookup);
  EXPECT_FALSE(parse_sharder("best"));
}

}  // namespace
}  // namespace stepcast::sharders_test

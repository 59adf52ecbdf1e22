#include "lab/sharding_reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <list>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/paths.h"

namespace stepcast::sharding_reference_test {
namespace {

// One warp at work, a cache of 2 rows of 32 bytes.
ReferenceMachine small_machine() {
  ReferenceMachine machine;
  machine.resident_warps = 1;
  machine.cache_bytes = 64;
  machine.cached_share = 1;
  return machine;
}

TEST(ShardingReference, IncludesNothingOfStepcast) {
  for (const char* name : {"sharding_reference.h", "sharding_reference.cpp"}) {
    std::ifstream in{test::source_dir() / "lab" / name};
    ASSERT_TRUE(in) << name;
    for (std::string line; std::getline(in, line);) {
      if (line.find("#include \"") == std::string::npos) continue;
      EXPECT_NE(line.find("lab/sharding_reference.h"), std::string::npos) << line;
    }
  }
}

// Rows 0 1 0 2 | 1 0 of 8 columns: 0 and 1 miss, 0 hits, 2 pushes 1 out, 1 pushes 0 out, 0 misses: 5 of 6.
TEST(ShardingReference, EvictsWhatWasUsedLeastRecently) {
  const SampledTable sampled{{0, 1, 0, 2, 1, 0}, {4, 6}, 3};
  const ReferenceShard shard{0, 8};
  const RankLookups r = look_up({&sampled, 1}, {&shard, 1}, 2, small_machine());
  EXPECT_DOUBLE_EQ(r.lookups, 6);
  EXPECT_DOUBLE_EQ(r.missed, 5);
  EXPECT_DOUBLE_EQ(r.distinct_rows, 3);
  EXPECT_DOUBLE_EQ(r.hottest_row, 3);
  EXPECT_DOUBLE_EQ(r.longest_bag, 4);
  EXPECT_DOUBLE_EQ(r.index_bytes, 8 * (6 + 2));
  EXPECT_DOUBLE_EQ(r.output_bytes, 2 * 8 * 4);
  EXPECT_DOUBLE_EQ(r.narrow.missed_bytes, 5 * 32);
}

// Two warps take turns: 0 from the first bag, 2 from the second, 1, 0 again: the bags' own hits are lost.
TEST(ShardingReference, WarpsThatWorkAtOnceShareTheCache) {
  const SampledTable sampled{{0, 1, 0, 2, 3, 2}, {3, 6}, 4};
  const ReferenceShard shard{0, 8};
  ReferenceMachine machine = small_machine();
  EXPECT_DOUBLE_EQ(look_up({&sampled, 1}, {&shard, 1}, 2, machine).missed, 4);
  machine.resident_warps = 2;
  EXPECT_DOUBLE_EQ(look_up({&sampled, 1}, {&shard, 1}, 2, machine).missed, 6);
}

TEST(ShardingReference, AgreesWithAListOfRows) {
  const std::array<ReferenceTable, 2> tables{{{2000, 16, 7, 0.8}, {500, 48, 11, 1.1}}};
  const std::vector<SampledTable> batch{sample_table(tables[0], 64, 1), sample_table(tables[1], 64, 2)};
  const std::vector<ReferenceShard> shards{{0, 16}, {1, 48}};
  ReferenceMachine machine = small_machine();
  machine.cache_bytes = 20'000;
  // One warp: bag after bag, table after table.
  std::list<std::pair<int, std::uint32_t>> recent;
  double held = 0, missed = 0;
  for (int t = 0; t < 2; ++t) {
    for (const std::uint32_t row : batch[static_cast<std::size_t>(t)].rows) {
      const auto at = std::find(recent.begin(), recent.end(), std::pair{t, row});
      const auto bytes = [](int table) { return table == 0 ? 64.0 : 192.0; };
      if (at != recent.end()) {
        recent.erase(at);
      } else {
        missed += 1;
        held += bytes(t);
      }
      recent.emplace_front(t, row);
      for (; held > machine.cache_bytes; recent.pop_back()) held -= bytes(recent.back().first);
    }
  }
  EXPECT_DOUBLE_EQ(look_up(batch, shards, 64, machine).missed, missed);
}

TEST(ShardingReference, PartsOfRowsAreAllOfThem) {
  const SampledTable sampled = sample_table({3000, 32, 9, 0.7}, 128, 4);
  const ReferenceMachine machine;
  double lookups = 0, distinct = 0;
  for (const std::uint32_t part : {0U, 1U, 2U}) {
    const ReferenceShard shard{0, 32, part, 3};
    const RankLookups r = look_up({&sampled, 1}, {&shard, 1}, 128, machine);
    lookups += r.lookups;
    distinct += r.distinct_rows;
  }
  EXPECT_DOUBLE_EQ(lookups, static_cast<double>(sampled.rows.size()));
  EXPECT_DOUBLE_EQ(distinct, static_cast<double>(sampled.distinct_rows));
}

TEST(ShardingReference, SamplesFollowZipfsLaw) {
  const SampledTable sampled = sample_table({1000, 32, 50, 1}, 4096, 3);
  const double n = static_cast<double>(sampled.rows.size());
  EXPECT_NEAR(n / 4096, 50, 2);  // bags vary by 90 %
  std::vector<std::uint32_t> times = lookups_by_row(sampled);
  std::sort(times.rbegin(), times.rend());
  // The first of 1000 rows has 1 / (1 + 1/2 + ... + 1/1000) = 0.1336 of the lookups, the tenth a tenth of that.
  EXPECT_NEAR(times[0] / n, 0.1336, 0.003);
  EXPECT_NEAR(times[9] / n, 0.01336, 0.0007);
}

TEST(ShardingReference, TakesTheLargerOfMemoryAndGather) {
  RankLookups r{.bags = 10, .lookups = 100, .index_bytes = 1000, .output_bytes = 2000};
  r.wide = {.gathered_bytes = 8e6, .missed_bytes = 1e6, .distinct_bytes = 5e5};
  r.longest_bag = 1000;
  r.hottest_row = 700;
  ReferenceMachine m;
  m.memory_bytes_per_us = 1e6;
  m.gather_bytes_per_us = 2e6;
  m.sorted_lookups_per_us = 10;
  // 8 / 2 us of gathering; 1.003 of memory.
  EXPECT_DOUBLE_EQ(reference_forward_us(r, m, {}), 10 + 4);
  // 100 / 10 us of sort, 8 of gradients, 2 x 0.5 of rows.
  EXPECT_DOUBLE_EQ(reference_backward_us(r, m, {}), 60 + 10 + 8 + 1);
  // 1000 rows one after the other, half a microsecond each; 700 gradients of 0.01 us.
  EXPECT_DOUBLE_EQ(reference_forward_us(r, m, {.narrow_rows_and_long_bags = true}), 10 + 500);
  EXPECT_DOUBLE_EQ(reference_backward_us(r, m, {.hot_rows = true}), 60 + 19 + 7);
  std::swap(r.wide, r.narrow);
  EXPECT_DOUBLE_EQ(reference_backward_us(r, m, {.narrow_rows_and_long_bags = true}), 60 + 10 + 1.55 * 9);
}

// TorchRec's estimator: 8 MB of whole blocks with 3 kB of indices and vectors at 1 MB/us; the update reads and writes 0.5 MB
// of distinct rows. Rows of 32 columns take 1.75 times as long. Two tables take the sum of what each takes.
TEST(ShardingReference, TakesTheEstimatorOfTorchRec) {
  RankLookups r{.bags = 10, .lookups = 100, .index_bytes = 1000, .output_bytes = 2000};
  r.wide = {.gathered_bytes = 8e6, .missed_bytes = 1e6, .distinct_bytes = 5e5};
  ReferenceMachine m;
  m.memory_bytes_per_us = 1e6;
  const ReferenceVariant estimator{.estimator = true};
  EXPECT_DOUBLE_EQ(reference_forward_us(r, m, estimator), 8.003);
  EXPECT_DOUBLE_EQ(reference_backward_us(r, m, estimator), 9.003);
  RankLookups narrow = r;
  std::swap(narrow.wide, narrow.narrow);
  EXPECT_DOUBLE_EQ(reference_forward_us(narrow, m, estimator), 1.75 * 8 + 0.003);
  r += narrow;
  EXPECT_DOUBLE_EQ(reference_forward_us(r, m, estimator), 8 + 1.75 * 8 + 0.006);
}

TEST(ShardingReference, TheSlowestRankAndTheSlowestLinkHoldTheStepUp) {
  RankLookups light{.bags = 10, .lookups = 100, .columns = 1e4}, heavy = light;
  heavy.wide.gathered_bytes = 1e9;
  const ReferenceMachine m;
  const ReferenceJob job{.sum_of_dims = 200};
  const std::array even{light, light}, uneven{light, heavy};
  const double longer = reference_step_us(uneven, job, m, {}) - reference_step_us(even, job, m, {});
  EXPECT_NEAR(longer, 1e9 / m.gather_bytes_per_us + 1e9 / m.memory_bytes_per_us, 40);
  EXPECT_GT(reference_step_us(even, job, m, {.links_slower = 9}), reference_step_us(even, job, m, {}));
}

}  // namespace
}  // namespace stepcast::sharding_reference_test

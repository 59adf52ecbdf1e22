
#include <cstdint>
#include <list>
#include <random>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/cost/analytic_model.h"
#include "stepcast/platform/platform_file.h"

namespace stepcast::sparse_reuse_test {
namespace {

// Rows that an LRU cache of so many rows does not hold, row by row.
double exact_misses(const std::vector<std::int64_t>& lookups, std::size_t capacity) {
  std::list<std::int64_t> order;
  std::unordered_map<std::int64_t, std::list<std::int64_t>::iterator> place;
  double misses = 0;
  for (const std::int64_t row : lookups) {
    if (const auto found = place.find(row); found != place.end()) {
      order.splice(order.begin(), order, found->second);
      continue;
    }
    misses += 1;
    if (order.size() == capacity) {
      place.erase(order.back());
      order.pop_back();
    }
    order.push_front(row);
    place[row] = order.begin();
  }
  return misses;
}

// Columns of the nonzeros, row after row of S; transposed: rows of the nonzeros, column after column.
std::vector<std::int64_t> positions(std::int64_t n, std::size_t nonzeros, unsigned seed) {
  std::mt19937_64 random{seed};
  std::uniform_int_distribution<std::int64_t> any{0, n - 1};
  std::vector<std::int64_t> out(nonzeros);
  for (std::int64_t& p : out) p = any(random);
  return out;
}

TEST(SparseReuse, FetchesWhatAnLruCacheDoesNotHold) {
  // Rows of 64 fp32 columns, 256 bytes; caches of 3,000, 12,000 and more rows than there are.
  for (const double rows_cached : {3000.0, 12'000.0, 50'000.0}) {
    for (const std::size_t nonzeros : {60'000U, 300'000U}) {
      const double exact =
          exact_misses(positions(30'000, nonzeros, 5), static_cast<std::size_t>(rows_cached));
      const double fetched = fetched_rows(AccessPattern::uniform(30'000), static_cast<double>(nonzeros), 256,
                                          rows_cached * 256 / 0.9);
      EXPECT_NEAR(fetched / exact, 1, 0.01) << rows_cached << " " << nonzeros;
    }
  }
}

TEST(SparseReuse, TrainingFetchesRowsOfBothSides) {
  SparseShape s{.rows = 20'000, .inner = 30'000, .cols = 64, .nonzeros = 300'000};
  const double cache = 3000 * 256 / 0.9;
  const double columns = exact_misses(positions(30'000, 300'000, 5), 3000),
               rows = exact_misses(positions(20'000, 300'000, 6), 3000);
  const auto more = [&](Direction direction) {
    const Operation operation{s, DType::fp32, direction};
    return sparse_work(operation, s, cache).bytes_read.value() - work_of(operation).bytes_read.value();
  };
  // Compulsory is every row once; rows are 256 bytes.
  EXPECT_NEAR(more(Direction::forward) / ((columns - 30'000) * 256), 1, 0.01);
  EXPECT_NEAR(more(Direction::backward) / ((columns - 30'000 + rows - 20'000) * 256), 1, 0.01);
  // Rows of a sparse D carry their positions, 8 bytes beside each of 4.
  s.sparse_result = true;
  const double wide = exact_misses(positions(30'000, 300'000, 5), 1000);
  EXPECT_NEAR(more(Direction::forward) / ((wide - 30'000) * 64 * 12), 1, 0.01);
  s.reuse = 3;
  EXPECT_EQ(more(Direction::forward), 0);
}

TEST(SparseReuse, ProductsBeyondTheCacheTakeLonger) {
  const Result<Platform> platform = load_platform("a100-sxm4-80gb");
  ASSERT_TRUE(platform.ok());
  const AnalyticModel model{platform->device};
  const auto us = [&](std::int64_t inner) {
    return model
        .time({SparseShape{.rows = 100'000, .inner = inner, .cols = 128, .nonzeros = 2e6}, DType::fp32})
        .value();
  };
  // 26 MB of D stay in the cache of 40 MB, 512 MB do not: beside the one fetch of each row most entries fetch again.
  EXPECT_GT(us(1'000'000), 3 * us(50'000));
}

}  // namespace
}  // namespace stepcast::sparse_reuse_test

#include "stepcast/cost/access_pattern.h"

#include <cmath>
#include <cstdint>
#include <list>
#include <map>
#include <random>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

namespace stepcast::access_pattern_test {
namespace {

using Indices = std::vector<std::int64_t>;

// Inverse of the cumulated power law, row by row.
Indices zipf_indices(std::int64_t rows, double exponent, std::size_t n, unsigned seed) {
  std::vector<double> weights;
  for (std::int64_t r = 1; r <= rows; ++r) weights.push_back(std::pow(static_cast<double>(r), -exponent));
  std::discrete_distribution<std::int64_t> row{weights.begin(), weights.end()};
  std::mt19937_64 random{seed};
  Indices indices(n);
  for (std::int64_t& i : indices) i = row(random);
  return indices;
}

double lru_hits(const Indices& indices, std::size_t capacity) {
  std::list<std::int64_t> order;
  std::unordered_map<std::int64_t, std::list<std::int64_t>::iterator> place;
  double hits = 0;
  for (const std::int64_t row : indices) {
    if (const auto found = place.find(row); found != place.end()) {
      hits += 1;
      order.splice(order.begin(), order, found->second);
      continue;
    }
    if (order.size() == capacity) {
      place.erase(order.back());
      order.pop_back();
    }
    order.push_front(row);
    place[row] = order.begin();
  }
  return hits;
}

TEST(ReuseFactors, BinsAreOpenBelowAndClosedAbove) {
  EXPECT_EQ(reuse_bin(1), 0U);
  EXPECT_EQ(reuse_bin(2), 1U);
  EXPECT_EQ(reuse_bin(3), 2U);
  EXPECT_EQ(reuse_bin(4), 2U);
  EXPECT_EQ(reuse_bin(5), 3U);
  EXPECT_EQ(reuse_bin(32768), 15U);
  EXPECT_EQ(reuse_bin(32769), 16U);
  EXPECT_EQ(reuse_bin(1'000'000'000), 16U);
}

TEST(ReuseFactors, OfABatchByHand) {
  // Row 7 three times, row 2 twice, rows 0 and 9 once: 4 distinct rows, 7 lookups.
  const Result<ReuseFactors> reuse = reuse_factors(Indices{7, 2, 7, 0, 9, 2, 7}, 10);
  ASSERT_TRUE(reuse.ok());
  EXPECT_DOUBLE_EQ(reuse->of_rows[0], 2.0 / 4);
  EXPECT_DOUBLE_EQ(reuse->of_rows[1], 1.0 / 4);
  EXPECT_DOUBLE_EQ(reuse->of_rows[2], 1.0 / 4);
  EXPECT_DOUBLE_EQ(reuse->of_lookups[2], 3.0 / 7);
  EXPECT_EQ(reuse->hottest, 3U);
  EXPECT_DOUBLE_EQ(reuse->mean(), 7.0 / 4);
}

TEST(ReuseFactors, EqualWhatCountingRowByRowGives) {
  const Indices indices = zipf_indices(5000, 0.9, 20000, 3);
  std::map<std::int64_t, std::uint64_t> times;
  for (const std::int64_t i : indices) ++times[i];
  ReuseHistogram rows{};
  for (const auto& [row, n] : times) {
    std::size_t bin = 0;
    while (bin + 1 < kReuseBins && std::exp2(static_cast<double>(bin)) < static_cast<double>(n)) ++bin;
    rows[bin] += 1.0 / static_cast<double>(times.size());
  }
  const Result<ReuseFactors> reuse = reuse_factors(indices, 5000);
  ASSERT_TRUE(reuse.ok());
  for (std::size_t k = 0; k < kReuseBins; ++k) EXPECT_NEAR(reuse->of_rows[k], rows[k], 1e-9) << k;
}

TEST(ReuseFactors, RefuseIndicesOutOfRange) {
  const Result<ReuseFactors> high = reuse_factors(Indices{0, 10}, 10);
  ASSERT_FALSE(high.ok());
  EXPECT_NE(high.error().message().find("index 1"), std::string::npos) << high.error().message();
  EXPECT_FALSE(reuse_factors(Indices{-1}, 10).ok());
}

TEST(AccessPattern, DistinctRowsAreThoseOfSimulatedBatches) {
  for (const double exponent : {0.0, 0.6, 1.2}) {
    const AccessPattern pattern = AccessPattern::zipf(20000, exponent);
    for (const std::size_t n : {5000U, 100000U}) {
      double distinct = 0;
      constexpr unsigned kBatches = 12;
      for (unsigned seed = 0; seed < kBatches; ++seed) {
        const Result<ReuseFactors> reuse = reuse_factors(zipf_indices(20000, exponent, n, seed), 20000);
        distinct += static_cast<double>(reuse->distinct_rows) / kBatches;
      }
      EXPECT_NEAR(pattern.distinct_rows(static_cast<double>(n)) / distinct, 1, 0.01) << exponent << " " << n;
    }
  }
}

// Shares of rows alone: what the other bins leave of the lookups is the most popular row's.
TEST(AccessPattern, TellsTheMostPopularRowFromSharesOfRows) {
  for (const double exponent : {0.9, 1.2}) {
    for (const std::size_t n : {100'000U, 400'000U}) {
      const ReuseFactors seen = *reuse_factors(zipf_indices(20000, exponent, n, 5), 20000);
      const AccessPattern pattern = AccessPattern::from_reuse(seen.of_rows, static_cast<double>(n), 20000);
      EXPECT_NEAR(pattern.hottest(static_cast<double>(n)) / static_cast<double>(seen.hottest), 1, 0.35)
          << exponent << " " << n;
      EXPECT_NEAR(pattern.distinct_rows(static_cast<double>(n)) / static_cast<double>(seen.distinct_rows), 1,
                  0.05);
    }
  }
  // One row of three is looked up 40,000 times, the others once: the last bin has no end.
  ReuseHistogram rows{};
  rows[0] = 2.0 / 3, rows[16] = 1.0 / 3;
  EXPECT_NEAR(AccessPattern::from_reuse(rows, 40'002, 10).hottest(40'002), 40'000, 1e-6);
}

TEST(AccessPattern, HitsAreThoseOfALeastRecentlyUsedCache) {
  for (const double exponent : {0.0, 0.7, 1.1}) {
    const Indices indices = zipf_indices(20000, exponent, 100000, 11);
    const AccessPattern pattern = AccessPattern::zipf(20000, exponent);
    for (const std::size_t capacity : {500U, 4000U}) {
      const double simulated = lru_hits(indices, capacity) / 1e5;
      EXPECT_NEAR(pattern.hits(1e5, static_cast<double>(capacity)) / 1e5, simulated, 0.012)
          << exponent << " " << capacity;
    }
  }
}

TEST(AccessPattern, OfABatchAnswersForAnotherOne) {
  const ReuseFactors seen = *reuse_factors(zipf_indices(50000, 0.8, 80000, 1), 50000);
  const AccessPattern pattern = AccessPattern::from_reuse(seen, 50000);
  EXPECT_NEAR(pattern.distinct_rows(80000), static_cast<double>(seen.distinct_rows), 1);
  const auto truth = [](std::size_t n) {
    return static_cast<double>(reuse_factors(zipf_indices(50000, 0.8, n, 2), 50000)->distinct_rows);
  };
  EXPECT_NEAR(pattern.distinct_rows(40000) / truth(40000), 1, 0.02);
  EXPECT_NEAR(pattern.distinct_rows(120000) / truth(120000), 1, 0.06);
  const double simulated = lru_hits(zipf_indices(50000, 0.8, 80000, 2), 3000);
  EXPECT_NEAR(pattern.hits(80000, 3000) / simulated, 1, 0.08);
}

TEST(AccessPattern, ReusedTwiceAsOftenIsHalfAsManyRows) {
  const AccessPattern once = AccessPattern::zipf(20000, 0.9), twice = once.reused(2);
  for (const double lookups : {1000.0, 50000.0}) {
    // Twice as many lookups of twice as many rows would touch the same share of them.
    EXPECT_NEAR(twice.distinct_rows(lookups) * 2, once.distinct_rows(2 * lookups), 1e-3 * lookups);
    EXPECT_GT(twice.hits(lookups, 500), once.hits(lookups, 500));
  }
}

TEST(AccessPattern, KnowsNoMoreRowsThanThereAre) {
  const AccessPattern one = AccessPattern::zipf(1, 1.5);
  EXPECT_DOUBLE_EQ(one.distinct_rows(1000), 1);
  EXPECT_DOUBLE_EQ(one.hits(1000, 10), 999);
  EXPECT_DOUBLE_EQ(one.distinct_rows(0), 0);
}

}  // namespace
}  // namespace stepcast::access_pattern_test

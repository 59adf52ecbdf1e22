// Access patterns of embedding tables. `reuse_factors()` measures how often the lookups of one batch repeat a
// row. `AccessPattern` then estimates, for a batch of any size, how many distinct rows it touches and how
// many of its lookups hit a cache.
//
//   STEPCAST_ASSIGN(const ReuseFactors reuse, reuse_factors(indices, table_rows));
//   const AccessPattern pattern = AccessPattern::from_reuse(reuse, table_rows);
//   pattern.distinct_rows(65536 * 20.0)     // expected
//   pattern.hits(65536 * 20.0, 100'000)     // lookups that find their row among 100,000 cached ones
//
// The reuse factor of a row is the number of times one batch looks it up. Its 17 bins are (0,1], (1,2], (2,4]
// ... (16384,32768] and above (Lin et al., "Towards Universal Performance Modeling for Machine Learning
// Training on Multi-GPU Platforms", and facebookresearch/dlrm_datasets).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

inline constexpr std::size_t kReuseBins = 17;
// Shares by bin, [bin]; they sum to 1.
using ReuseHistogram = std::array<double, kReuseBins>;

// Default exponent of the power law for tables with an unknown access pattern. It is near the middle of the
// range 0.2 to 1.25 that production tables span; the published batches look a row up 6.9 times on average.
inline constexpr double kTypicalSkew = 0.75;

// The bin of a row that is looked up `times` times, 0 to 16. `times` >= 1; 0 gives bin 0.
[[nodiscard]] std::size_t reuse_bin(std::uint64_t times);

// Statistics of the lookups of one batch into one table.
struct ReuseFactors {
  ReuseHistogram of_rows{};         // shares of the distinct rows: the published features
  ReuseHistogram of_lookups{};      // shares of the lookups, by the bin of their row
  std::uint64_t lookups = 0;        // in the batch
  std::uint64_t distinct_rows = 0;  // rows looked up at least once
  std::uint64_t hottest = 0;        // lookups of the most popular row
  // Mean lookups per distinct row; 0 for an empty batch.
  [[nodiscard]] double mean() const {
    return distinct_rows > 0 ? static_cast<double>(lookups) / static_cast<double>(distinct_rows) : 0;
  }
};

// Reuse factors of one table in one batch of `indices`, O(indices). Errors: an index below 0 or not below
// `rows`.
[[nodiscard]] Result<ReuseFactors> reuse_factors(std::span<const std::int64_t> indices, std::int64_t rows);

// The distribution of lookups over the rows of one table, as at most about a hundred groups of equally
// popular rows. Immutable.
class AccessPattern {
 public:
  // All rows equally popular.
  [[nodiscard]] static AccessPattern uniform(double rows) { return zipf(rows, 0); }
  // Power law: the n-th most popular row has a probability proportional to n^-exponent. `rows` >= 1; an
  // exponent <= 0 gives the uniform pattern.
  [[nodiscard]] static AccessPattern zipf(double rows, double exponent);
  // The pattern observed in one batch of `batch.lookups` lookups into a table of `rows` rows. Smaller batches
  // are modelled as a random thinning of the observed one; larger batches extrapolate its growth of distinct
  // rows.
  [[nodiscard]] static AccessPattern from_reuse(const ReuseFactors& batch, double rows);
  // As above where only the shares of rows by bin are known. `lookups` is the size of the batch. Without
  // shares or lookups the result is uniform.
  [[nodiscard]] static AccessPattern from_reuse(const ReuseHistogram& of_rows, double lookups, double rows);

  [[nodiscard]] double rows() const { return rows_; }
  // Expected number of distinct rows in a batch of `lookups` lookups, at most `lookups` and rows().
  [[nodiscard]] double distinct_rows(double lookups) const;
  // Expected lookups of a batch that hit an LRU cache of the last `cached_rows` distinct rows (the
  // characteristic-time approximation of Che et al.). The first lookup of a row always misses.
  [[nodiscard]] double hits(double lookups, double cached_rows) const;
  // Expected lookups of the most popular row in a batch of `lookups`.
  [[nodiscard]] double hottest(double lookups) const;
  // Number of rows with at least this `probability` per lookup, and the share of all lookups that go to them.
  struct Popular {
    double rows = 0, share = 0;
  };
  [[nodiscard]] Popular popular(double probability) const;
  // The pattern of one of `parts` equal row-wise shards; each shard gets an equal part of the popular rows.
  [[nodiscard]] AccessPattern share_of_rows(double parts) const;
  // The same number of lookups with `times` times the reuse per row: proportionally fewer rows are looked up.
  [[nodiscard]] AccessPattern reused(double times) const;
  // Expected shares of the distinct rows by reuse bin, in a batch of `lookups` lookups.
  [[nodiscard]] ReuseHistogram reuse_of_rows(double lookups) const;

 private:
  // Rows of equal popularity.
  struct Group {
    double rows = 0;
    double probability = 0;  // of one row of the group, in one lookup
  };
  // Expected number of rows of `group` that a batch of `lookups` touches.
  [[nodiscard]] double first_lookups(const Group& group, double lookups) const;

  double rows_ = 1;
  double observed_lookups_ = 0;  // size of the observed batch; 0: the probabilities are exact (uniform, zipf)
  double growth_ = 0;            // d ln(distinct rows) / d ln(lookups) at the observed batch
  std::vector<Group> groups_;    // most popular first
};

}  // namespace stepcast

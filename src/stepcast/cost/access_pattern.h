// Which rows of an embedding table the lookups of a batch touch: reuse factors of a batch, and the pattern that
// answers how many distinct rows a batch of another size touches and how many of its lookups a cache serves.
//
//   STEPCAST_ASSIGN(const ReuseFactors reuse, reuse_factors(indices, table_rows));
//   const AccessPattern pattern = AccessPattern::from_reuse(reuse, table_rows);
//   pattern.distinct_rows(65536 * 20.0)     // expected
//   pattern.hits(65536 * 20.0, 100'000)     // lookups that find their row among 100,000 cached ones
//
// The reuse factor of a row is how often one batch looks it up. Its 17 bins are (0,1], (1,2], (2,4] ...
// (16384,32768] and above (Lin et al., "Towards Universal Performance Modeling for Machine Learning Training on
// Multi-GPU Platforms", and facebookresearch/dlrm_datasets).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast {

inline constexpr std::size_t kReuseBins = 17;
// [bin] shares that sum to 1.
using ReuseHistogram = std::array<double, kReuseBins>;

// Exponent of the power law that stands for tables of which no pattern is known: near the middle of the range 0.2 to
// 1.25 that production tables span; the published batches look a row up 6.9 times on average.
inline constexpr double kTypicalSkew = 0.75;

// The bin of a row that is looked up `times` >= 1 times.
[[nodiscard]] std::size_t reuse_bin(std::uint64_t times);

struct ReuseFactors {
  ReuseHistogram of_rows{};     // share of the distinct rows: the published features
  ReuseHistogram of_lookups{};  // share of the lookups that go to such rows
  std::uint64_t lookups = 0;
  std::uint64_t distinct_rows = 0;
  std::uint64_t hottest = 0;  // lookups of the row that is looked up most
  [[nodiscard]] double mean() const {
    return distinct_rows > 0 ? static_cast<double>(lookups) / static_cast<double>(distinct_rows) : 0;
  }
};

// Of one table in one batch. Errors: an index below 0 or not below `rows`.
[[nodiscard]] Result<ReuseFactors> reuse_factors(std::span<const std::int64_t> indices, std::int64_t rows);

class AccessPattern {
 public:
  // Every row as likely as the others.
  [[nodiscard]] static AccessPattern uniform(double rows) { return zipf(rows, 0); }
  // The n-th most popular row as likely as n^-exponent. `rows` >= 1, exponent >= 0.
  [[nodiscard]] static AccessPattern zipf(double rows, double exponent);
  // As a batch of `lookups` had it, of a table of `rows` rows; what another batch touches is as the thinning of
  // this one says for fewer lookups, and goes on growing at the same rate for more.
  [[nodiscard]] static AccessPattern from_reuse(const ReuseFactors& batch, double rows);
  // The same when only the shares of rows are known.
  [[nodiscard]] static AccessPattern from_reuse(const ReuseHistogram& of_rows, double lookups, double rows);

  [[nodiscard]] double rows() const { return rows_; }
  // Expected in a batch of so many lookups.
  [[nodiscard]] double distinct_rows(double lookups) const;
  // Expected lookups of a batch that find their row among the last `cached_rows` distinct rows looked up (an LRU
  // cache, by the characteristic-time approximation of Che et al.), the first lookup of a row never.
  [[nodiscard]] double hits(double lookups, double cached_rows) const;
  // Expected lookups of the most popular row.
  [[nodiscard]] double hottest(double lookups) const;
  // The rows that a lookup goes to with at least this probability, and the share of lookups that go to them.
  struct Popular {
    double rows = 0, share = 0;
  };
  [[nodiscard]] Popular popular(double probability) const;
  // Of one of `parts` equal parts of the rows, each with as many popular ones.
  [[nodiscard]] AccessPattern share_of_rows(double parts) const;
  // Scales the reuse of rows by a factor and keeps the number of lookups: proportionally fewer rows are looked up.
  [[nodiscard]] AccessPattern reused(double times) const;
  // The 17 bins of a batch of so many lookups.
  [[nodiscard]] ReuseHistogram reuse_of_rows(double lookups) const;

 private:
  struct Group {
    double rows = 0;
    double probability = 0;  // of one of its rows, in one lookup
  };
  [[nodiscard]] double first_lookups(const Group& group, double lookups) const;

  double rows_ = 1;
  double observed_lookups_ = 0;  // 0: probabilities are known and not concluded from a batch
  double growth_ = 0;            // d ln(distinct rows) / d ln(lookups) at the observed batch
  std::vector<Group> groups_;    // most popular first
};

}  // namespace stepcast

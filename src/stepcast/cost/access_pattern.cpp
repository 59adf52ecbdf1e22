#include "stepcast/cost/access_pattern.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

namespace stepcast {
namespace {

// The most popular kSingleRanks rows of a power law are a group each; after them, groups grow by the factor
// kRankRatio.
constexpr double kSingleRanks = 16, kRankRatio = 1.35;
// Upper limit of the number of rows of a table.
constexpr double kMostRows = 1e15;

// Mean reuse factor of the rows of each bin, estimated from the shares of rows alone. Within a bin, rows with
// reuse n are assumed to be distributed as n^-g over the whole numbers n, with g from the neighbouring bins.
std::array<double, kReuseBins> means_of_bins(const ReuseHistogram& of_rows) {
  // Bins up to this one are summed number by number, larger ones by an integral.
  constexpr std::size_t kExact = 10;
  std::array<double, kReuseBins> means{};
  means[0] = 1;
  for (std::size_t k = 1; k < kReuseBins; ++k) {
    const double here = of_rows[k], below = of_rows[k - 1], above = k + 1 < kReuseBins ? of_rows[k + 1] : 0;
    // Bins double in width, so shares of neighbouring bins differ by the factor 2^(1 - g). Bin 0 has only the
    // number 1, no width, and so gives no slope.
    double g = 2;
    if (here > 0 && above > 0)
      g = 1 - std::log2(above / here);
    else if (here > 0 && below > 0 && k > 1)
      g = 1 - std::log2(here / below);
    g = std::clamp(g, -6.0, 6.0);
    const double first = std::exp2(static_cast<double>(k - 1)) + 1, last = std::exp2(static_cast<double>(k));
    double rows = 0, lookups = 0;
    if (k <= kExact) {
      for (double n = first; n <= last; ++n) {
        rows += std::pow(n / last, -g);
        lookups += n * std::pow(n / last, -g);
      }
      means[k] = lookups / rows;
    } else {
      // The sum over the bin, approximated by the integral over (1/2, 1] of its end.
      const auto integral = [](double p) {
        return std::abs(p) < 1e-9 ? std::log(2.0) : (1 - std::exp2(-p)) / p;
      };
      means[k] = last * integral(2 - g) / integral(1 - g);
    }
  }
  return means;
}

// Number of distinct rows of a batch, refined from the estimate `about`. Shares are ratios of whole numbers:
// if the rarest non-empty bin has one, two or three rows, its share gives the exact total. Returns `about`
// where the rarest bin has more rows or the exact total would differ from `about` by more than a factor of
// 1.5.
double distinct_of(const std::array<double, kReuseBins>& of_rows, double sum, double about) {
  constexpr double kMostCounted = 3, kMostOff = 1.5;
  double rarest = 1;
  for (const double share : of_rows)
    if (share > 0) rarest = std::min(rarest, share / sum);
  const double n = std::max(1.0, std::round(about * rarest));
  if (n > kMostCounted || n / rarest > kMostOff * about || n / rarest < about / kMostOff) return about;
  return n / rarest;
}

// Expected lookups of the most popular of n rows with `mean` lookups on average, each with more than `low`.
// Assumes that the i-th row has low ((n + 1) / i)^s lookups and solves for s by bisection.
double most_of(double n, double mean, double low) {
  double least = 0, most = 8;
  const auto count = static_cast<int>(std::min(1000.0, std::round(n)));
  for (int step = 0; step < 40; ++step) {
    const double s = (least + most) / 2;
    double all = 0;
    for (int i = 1; i <= count; ++i) all += low * std::pow((n + 1) / i, s);
    (all < count * mean ? least : most) = s;
  }
  return low * std::pow(n + 1, least);
}

// Sum of n^-s over n = from .. to - 1, by the midpoint rule.
double power_sum(double from, double to, double s) {
  const double a = from - 0.5, b = to - 0.5;
  if (std::abs(s - 1) < 1e-9) return std::log(b / a);
  return (std::pow(b, 1 - s) - std::pow(a, 1 - s)) / (1 - s);
}

}  // namespace

std::size_t reuse_bin(std::uint64_t times) {
  if (times <= 1) return 0;
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(times - 1)), kReuseBins - 1);
}

Result<ReuseFactors> reuse_factors(std::span<const std::int64_t> indices, std::int64_t rows) {
  std::int64_t highest = -1;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= rows) {
      return Error::at("", fmt::format("index {}", i))
          .found(fmt::format("{}", indices[i]))
          .expected(fmt::format("a row of the table, 0 to {}", rows - 1));
    }
    highest = std::max(highest, indices[i]);
  }
  ReuseFactors reuse;
  reuse.lookups = indices.size();
  const auto count_row = [&reuse](std::uint64_t n) {
    if (n == 0) return;
    ++reuse.distinct_rows;
    reuse.of_rows[reuse_bin(n)] += 1;
    reuse.of_lookups[reuse_bin(n)] += static_cast<double>(n);
    reuse.hottest = std::max(reuse.hottest, n);
  };
  // Dense counters, one per row, where the highest index is at most kRowsPerLookup times the number of
  // lookups; a hash map for sparse batches.
  constexpr std::int64_t kRowsPerLookup = 4;
  if (highest / kRowsPerLookup <= static_cast<std::int64_t>(indices.size())) {
    std::vector<std::uint32_t> times(static_cast<std::size_t>(highest + 1), 0);
    for (const std::int64_t row : indices) ++times[static_cast<std::size_t>(row)];
    for (const std::uint32_t n : times) count_row(n);
  } else {
    std::unordered_map<std::int64_t, std::uint64_t> times;
    times.reserve(indices.size() / 4);
    for (const std::int64_t row : indices) ++times[row];
    for (const auto& [row, n] : times) count_row(n);
  }
  for (std::size_t k = 0; k < kReuseBins && reuse.distinct_rows > 0; ++k) {
    reuse.of_rows[k] /= static_cast<double>(reuse.distinct_rows);
    reuse.of_lookups[k] /= static_cast<double>(reuse.lookups);
  }
  return reuse;
}

// The groups have a probability proportional to the summed power law, normalised to 1 over all rows.
AccessPattern AccessPattern::zipf(double rows, double exponent) {
  AccessPattern pattern;
  pattern.rows_ = std::clamp(std::floor(rows), 1.0, kMostRows);
  if (exponent <= 0) {
    pattern.groups_ = {{pattern.rows_, 1 / pattern.rows_}};
    return pattern;
  }
  double total = 0;
  for (double first = 1; first <= pattern.rows_;) {
    double next = first < kSingleRanks ? first + 1 : std::floor(first * kRankRatio);
    next = std::min(next, pattern.rows_ + 1);
    const double weight = next == first + 1 ? std::pow(first, -exponent) : power_sum(first, next, exponent);
    pattern.groups_.push_back({next - first, weight / (next - first)});
    total += weight;
    first = next;
  }
  for (Group& group : pattern.groups_) group.probability /= total;
  return pattern;
}

AccessPattern AccessPattern::from_reuse(const ReuseFactors& batch, double rows) {
  AccessPattern pattern;
  pattern.rows_ = std::clamp(rows, 1.0, kMostRows);
  pattern.observed_lookups_ = static_cast<double>(batch.lookups);
  const auto distinct = static_cast<double>(batch.distinct_rows);
  for (std::size_t k = kReuseBins; k-- > 0;) {
    const double n = batch.of_rows[k] * distinct;
    const double lookups = batch.of_lookups[k] * pattern.observed_lookups_;
    if (n <= 0 || lookups <= 0) continue;
    const auto hottest = static_cast<double>(batch.hottest);
    if (pattern.groups_.empty() && n > 1.5 && hottest > lookups / n && hottest < lookups) {
      // The most popular row gets a group of its own size 1: it alone may limit the backward, which the mean
      // of its bin hides.
      pattern.groups_.push_back({1, hottest / pattern.observed_lookups_});
      pattern.groups_.push_back({n - 1, (lookups - hottest) / (n - 1) / pattern.observed_lookups_});
      continue;
    }
    pattern.groups_.push_back({n, lookups / n / pattern.observed_lookups_});
  }
  // Removing a lookup removes a distinct row only if it was the only lookup of its row, so the growth of
  // distinct rows with lookups is the share of rows with one lookup.
  const double only_once = batch.of_rows[0] * distinct;
  pattern.growth_ = distinct > 0 ? only_once / distinct : 0;
  return pattern;
}

AccessPattern AccessPattern::from_reuse(const ReuseHistogram& of_rows, double lookups, double rows) {
  const std::array<double, kReuseBins> means = means_of_bins(of_rows);
  double sum = 0, mean = 0;
  for (std::size_t k = 0; k < kReuseBins; ++k) {
    sum += of_rows[k];
    mean += of_rows[k] * means[k];
  }
  AccessPattern pattern;
  pattern.rows_ = std::clamp(rows, 1.0, kMostRows);
  if (!(sum > 0) || !(lookups > 0)) return uniform(rows);
  mean /= sum;
  pattern.observed_lookups_ = lookups;
  const double distinct = distinct_of(of_rows, sum, std::min(lookups / mean, pattern.rows_));
  std::size_t top = kReuseBins - 1;
  while (of_rows[top] <= 0) --top;
  // The mean of the top bin is what the lookups of all other bins leave for it, within the limits of the bin.
  // The means of the other bins are typical values.
  const double n_top = of_rows[top] / sum * distinct;
  double others = 0;
  for (std::size_t k = 0; k < top; ++k) others += of_rows[k] / sum * distinct * means[k];
  const double low = top == 0 ? 1 : std::exp2(static_cast<double>(top) - 1) + 1;
  const double high = top + 1 == kReuseBins ? lookups : std::exp2(static_cast<double>(top));
  const double mean_top = std::clamp((lookups - others) / n_top, low, std::max(low, high));
  const double all = others + n_top * mean_top;
  if (n_top > 1.5 && mean_top > low) {
    const double hottest = std::min(most_of(n_top, mean_top, low), high);
    pattern.groups_.push_back({1, hottest / all});
    pattern.groups_.push_back({n_top - 1, std::max(0.0, n_top * mean_top - hottest) / (n_top - 1) / all});
  } else {
    pattern.groups_.push_back({n_top, mean_top / all});
  }
  for (std::size_t k = top; k-- > 0;) {
    const double n = of_rows[k] / sum * distinct;
    if (n > 0) pattern.groups_.push_back({n, means[k] / all});
  }
  pattern.growth_ = of_rows[0] / sum;
  return pattern;
}

// Exact patterns: rows * (1 - (1 - p)^lookups). Observed patterns: thinning for smaller batches, a power law
// with the exponent `growth_` for larger ones.
double AccessPattern::first_lookups(const Group& group, double lookups) const {
  if (observed_lookups_ <= 0) {
    if (group.probability >= 1) return group.rows * (lookups > 0 ? 1 : 0);
    return group.rows * -std::expm1(lookups * std::log1p(-group.probability));
  }
  const double times = group.probability * observed_lookups_;
  const double share = lookups / observed_lookups_;
  if (share < 1) return group.rows * -std::expm1(times * std::log1p(-share));
  return group.rows * std::pow(share, growth_);
}

double AccessPattern::distinct_rows(double lookups) const {
  if (lookups <= 0) return 0;
  double distinct = 0;
  for (const Group& group : groups_) distinct += first_lookups(group, lookups);
  return std::min({distinct, rows_, lookups});
}

double AccessPattern::hits(double lookups, double cached_rows) const {
  if (lookups <= 0 || cached_rows <= 0) return 0;
  const double distinct = distinct_rows(lookups);
  if (distinct <= cached_rows) return lookups - distinct;
  // The characteristic time of the cache: the number of lookups that touch `cached_rows` distinct rows. A row
  // that is not looked up again within this window has left the cache.
  double low = 0, high = lookups;
  for (int i = 0; i < 50 && high - low > 1e-5 * high; ++i) {
    const double middle = (low + high) / 2;
    (distinct_rows(middle) < cached_rows ? low : high) = middle;
  }
  const double window = high;
  if (observed_lookups_ > 0) {
    // A row with n lookups at random positions of the batch: each of its n - 1 intervals is shorter than the
    // window with probability 1 - (1 - window / lookups)^n.
    double hits = 0;
    for (const Group& g : groups_) {
      const double touched = first_lookups(g, lookups), all = g.rows * g.probability * lookups;
      if (touched <= 0 || all <= touched) continue;
      const double within = -std::expm1(all / touched * std::log1p(-std::min(window / lookups, 1 - 1e-12)));
      hits += (all - touched) * within;
    }
    return std::clamp(hits, 0.0, lookups - distinct);
  }
  double share = 0;  // share of the lookups after the window that hit
  for (const Group& g : groups_) share += g.rows * g.probability * -std::expm1(-g.probability * window);
  // Within the window nothing is evicted: only first lookups miss.
  const double hits = window - cached_rows + (lookups - window) * share;
  return std::clamp(hits, 0.0, lookups - distinct);
}

double AccessPattern::hottest(double lookups) const {
  return groups_.empty() ? 0 : std::max(lookups > 0 ? 1.0 : 0.0, groups_.front().probability * lookups);
}

AccessPattern::Popular AccessPattern::popular(double probability) const {
  Popular popular;
  for (const Group& g : groups_) {
    if (g.probability < probability) break;
    popular.rows += g.rows;
    popular.share += g.rows * g.probability;
  }
  return popular;
}

AccessPattern AccessPattern::share_of_rows(double parts) const {
  AccessPattern part = *this;
  part.rows_ = std::max(1.0, rows_ / parts);
  part.observed_lookups_ = observed_lookups_ / parts;
  for (Group& g : part.groups_) {
    // A lookup of the shard is one of `parts` lookups of the whole table, and the shard has 1 / `parts` of
    // the rows.
    g.rows /= parts;
    g.probability = std::min(1.0, g.probability * parts);
  }
  return part;
}

AccessPattern AccessPattern::reused(double times) const {
  AccessPattern other = *this;
  other.rows_ = std::max(1.0, rows_ / times);
  for (Group& g : other.groups_) {
    g.rows /= times;
    g.probability = std::min(1.0, g.probability * times);
  }
  return other;
}

ReuseHistogram AccessPattern::reuse_of_rows(double lookups) const {
  ReuseHistogram shares{};
  for (const Group& g : groups_) {
    const double touched = first_lookups(g, lookups);
    const double mean = g.probability * lookups;
    if (observed_lookups_ > 0 || mean > 200) {
      shares[reuse_bin(static_cast<std::uint64_t>(std::clamp(std::round(mean), 1.0, 1e18)))] += touched;
      continue;
    }
    // The number of lookups of a row is Poisson-distributed.
    double probability = std::exp(-mean);
    for (std::uint64_t times = 1; times < 400; ++times) {
      probability *= mean / static_cast<double>(times);
      shares[reuse_bin(times)] += g.rows * probability;
    }
  }
  double sum = 0;
  for (const double share : shares) sum += share;
  for (double& share : shares) share = sum > 0 ? share / sum : 0;
  return shares;
}

}  // namespace stepcast

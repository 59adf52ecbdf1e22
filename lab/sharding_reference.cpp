#include "lab/sharding_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace stepcast {
namespace {

constexpr double kNumberBytes = 4, kIndexBytes = 8;
constexpr double kSectorBytes = 32;
constexpr double kBagDeviation = 0.8;  // standard deviation of the logarithm of the lengths of bags
// Factors of the published model of lookups for rows of at most 32 and at most 64 columns.
constexpr double kNarrowFactor = 1.55, kMiddleFactor = 1.1;
constexpr double kRowLatencyUs = 0.5;    // rows of one bag are read one after another, each from memory
constexpr double kHotGradientUs = 0.01;  // 512 bytes at the read bandwidth of one multiprocessor
// Penalties of TorchRec's estimator for rows that fill a half and a quarter of a block of 128 columns.
constexpr double kHalfBlockPenalty = 1.15, kQuarterBlockPenalty = 1.75;

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {
    for (int i = 0; i < 4; ++i) (void)next();
  }
  // xorshift64*, with a state that is never 0.
  std::uint64_t next() {
    std::uint64_t x = state_ | (state_ == 0 ? 1U : 0U);
    x ^= x >> 12U;
    x ^= x << 25U;
    x ^= x >> 27U;
    state_ = x;
    return x * 2685821657736338717ULL;
  }
  double uniform() { return (static_cast<double>(next() >> 11U) + 0.5) * 0x1p-53; }
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(6.28318530717958648 * uniform()); }

 private:
  std::uint64_t state_;
};

// Samples Zipf's law on 1 .. n by rejection-inversion (Hoermann and Derflinger, 1996).
class Zipf {
 public:
  Zipf(double n, double exponent) : n_(n), s_(exponent) {
    first_ = integral(1.5) - 1;
    last_ = integral(n + 0.5);
    sure_ = 2 - inverse(integral(2.5) - std::pow(2, -s_));
  }
  double operator()(Random& random) const {
    while (true) {
      const double u = last_ + random.uniform() * (first_ - last_);
      const double x = inverse(u);
      const double k = std::clamp(std::round(x), 1.0, n_);
      if (k - x <= sure_ || u >= integral(k + 0.5) - std::pow(k, -s_)) return k;
    }
  }

  [[nodiscard]] double largest() const { return n_; }

 private:
  [[nodiscard]] double integral(double x) const {
    if (std::abs(1 - s_) < 1e-9) return std::log(x);
    return (std::pow(x, 1 - s_) - 1) / (1 - s_);
  }
  [[nodiscard]] double inverse(double u) const {
    if (std::abs(1 - s_) < 1e-9) return std::exp(u);
    return std::pow(std::max(1 + u * (1 - s_), 1e-300), 1 / (1 - s_));
  }
  double n_, s_, first_ = 0, last_ = 0, sure_ = 0;
};

// Numbers rows in order of first occurrence.
class Numbers {
 public:
  explicit Numbers(double rows) : direct_(rows <= kMostDirect ? static_cast<std::size_t>(rows) + 1 : 0, 0) {}
  std::uint32_t of(std::size_t row) {
    std::uint32_t& number = direct_.empty() ? sparse_[row] : direct_[row];
    if (number == 0) number = ++given_;
    return number - 1;
  }

 private:
  static constexpr double kMostDirect = 1 << 22;
  std::vector<std::uint32_t> direct_;
  std::unordered_map<std::size_t, std::uint32_t> sparse_;
  std::uint32_t given_ = 0;
};

// Evicts least recently used rows. Rows are numbered over all tables of a rank.
class LruCache {
 public:
  LruCache(std::size_t rows, double bytes) : nodes_(rows + 1), left_(bytes) {
    nodes_.back() = {last(), last()};
  }
  // Returns whether the row is cached, and caches it. `bytes` of a row must always be equal.
  bool touch(std::uint32_t row, float bytes) {
    Node& node = nodes_[row];
    const bool hit = node.next != kAbsent;
    if (hit) {
      nodes_[node.previous].next = node.next;
      nodes_[node.next].previous = node.previous;
    } else {
      left_ -= static_cast<double>(bytes);
      node.bytes = bytes;
    }
    node.previous = last();
    node.next = nodes_.back().next;
    nodes_[node.next].previous = row;
    nodes_.back().next = row;
    while (left_ < 0 && nodes_.back().previous != row) {
      const std::uint32_t oldest = nodes_.back().previous;
      Node& out = nodes_[oldest];
      left_ += static_cast<double>(out.bytes);
      nodes_[out.previous].next = last();
      nodes_.back().previous = out.previous;
      out.next = kAbsent;
    }
    return hit;
  }

 private:
  static constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();
  struct Node {
    std::uint32_t previous = kAbsent, next = kAbsent;
    float bytes = 0;
  };
  // The list node between the least and the most recently used row.
  [[nodiscard]] std::uint32_t last() const { return static_cast<std::uint32_t>(nodes_.size() - 1); }
  std::vector<Node> nodes_;
  double left_;
};

// A warp and its current bag.
struct Warp {
  const std::uint32_t* at = nullptr;
  const std::uint32_t* end = nullptr;
  std::uint32_t shard = 0;
};

// Time by TorchRec's estimator for the bytes of every width. Rows of 65 to 127 columns, which no task has, count as whole
// blocks.
double estimated_us(const RankLookups& r, const ReferenceMachine& m,
                    double (*bytes)(const RankLookups::OfWidth&)) {
  return (kQuarterBlockPenalty * bytes(r.narrow) + kHalfBlockPenalty * bytes(r.middle) + bytes(r.wide) +
          r.index_bytes + r.output_bytes) /
         m.memory_bytes_per_us;
}

double width_factor(const ReferenceVariant& variant, double factor) {
  return variant.narrow_rows_and_long_bags ? factor : 1;
}

struct DenseTimes {
  double bottom = 0, between = 0, bottom_backward = 0, update = 0, parameters = 0;
};

DenseTimes dense_times(const ReferenceJob& job, double samples, const ReferenceMachine& m) {
  DenseTimes t;
  const auto moved = [&](double bytes) { return bytes / m.stream_bytes_per_us + m.kernel_start_us; };
  const auto product = [&](double a, double b, double c) {
    const double bytes = kNumberBytes * (a * b + b * c + a * c);
    return std::max(2 * a * b * c / m.flops_per_us, bytes / m.stream_bytes_per_us) + m.kernel_start_us;
  };
  const auto mlp = [&](double input, const std::vector<double>& widths, bool input_gradient, double& forward,
                       double& backward) {
    for (const double width : widths) {
      const double values = samples * width * kNumberBytes;
      forward += product(samples, input, width) + moved(2 * values);
      backward += product(samples, input, width) + moved(3 * values) + moved(values);
      if (input_gradient) backward += product(samples, input, width);
      t.parameters += (input + 1) * width;
      input = width;
      input_gradient = true;
    }
  };
  mlp(job.dense_features, job.bottom_mlp, false, t.bottom, t.bottom_backward);
  const double joined = job.sum_of_dims + job.bottom_mlp.back();
  double top = 0, top_backward = 0;
  mlp(joined, job.top_mlp, true, top, top_backward);
  const double concatenation = moved(2 * samples * joined * kNumberBytes);
  const double loss = 2 * moved(3 * samples * kNumberBytes);
  t.between = concatenation + top + loss + top_backward + concatenation;
  t.update = moved(3 * t.parameters * kNumberBytes);
  return t;
}

// Lookups of a shard: all of its table, or those to its part of the rows.
struct Queue {
  std::vector<std::uint32_t> part;
  std::vector<std::uint32_t> part_ends;
  const std::uint32_t* rows = nullptr;
  const std::uint32_t* ends = nullptr;
  std::uint32_t first_number = 0;
  float row_bytes = 0;
};

// `numbers`: in and out, the first free row number. Rows of the tables of all shards are numbered consecutively.
std::vector<Queue> queues_of(std::span<const SampledTable> batch, std::span<const ReferenceShard> shards,
                             std::size_t bags, std::uint32_t& numbers) {
  std::vector<Queue> queues(shards.size());
  for (std::size_t s = 0; s < shards.size(); ++s) {
    const SampledTable& sampled = batch[shards[s].table];
    Queue& q = queues[s];
    q.first_number = numbers;
    numbers += sampled.distinct_rows;
    q.row_bytes =
        static_cast<float>(std::ceil(shards[s].columns * kNumberBytes / kSectorBytes) * kSectorBytes);
    q.rows = sampled.rows.data();
    q.ends = sampled.bag_ends.data();
    if (shards[s].row_parts <= 1) continue;
    std::uint32_t at = 0;
    for (std::size_t b = 0; b < bags; ++b) {
      for (; at < sampled.bag_ends[b]; ++at)
        if (sampled.rows[at] % shards[s].row_parts == shards[s].row_part) q.part.push_back(sampled.rows[at]);
      q.part_ends.push_back(static_cast<std::uint32_t>(q.part.size()));
    }
    q.rows = q.part.data();
    q.ends = q.part_ends.data();
  }
  return queues;
}

}  // namespace

SampledTable sample_table(const ReferenceTable& table, std::size_t bags, std::uint64_t seed) {
  Random random{seed * 0x9e3779b97f4a7c15ULL + 0x1234567ULL};
  const Zipf zipf{std::max(1.0, table.rows), table.skew};
  SampledTable sampled;
  sampled.bag_ends.reserve(bags);
  const auto expected = static_cast<std::size_t>(static_cast<double>(bags) * table.pooling * 1.1) + 64;
  sampled.rows.reserve(expected);
  Numbers numbers{zipf.largest()};
  for (std::size_t b = 0; b < bags; ++b) {
    const double mean =
        table.pooling * std::exp(kBagDeviation * random.normal() - kBagDeviation * kBagDeviation / 2);
    const double length = std::floor(mean + random.uniform());
    for (double i = 0; i < length; ++i) {
      sampled.rows.push_back(numbers.of(static_cast<std::size_t>(zipf(random))));
      sampled.distinct_rows = std::max(sampled.distinct_rows, sampled.rows.back() + 1);
    }
    sampled.bag_ends.push_back(static_cast<std::uint32_t>(sampled.rows.size()));
  }
  return sampled;
}

std::vector<std::uint32_t> lookups_by_row(const SampledTable& sampled) {
  std::vector<std::uint32_t> times(sampled.distinct_rows, 0);
  for (const std::uint32_t row : sampled.rows) ++times[row];
  return times;
}

RankLookups look_up(std::span<const SampledTable> batch, std::span<const ReferenceShard> shards,
                    std::size_t bags, const ReferenceMachine& machine) {
  RankLookups rank;
  std::uint32_t numbers = 0;
  const std::vector<Queue> queues = queues_of(batch, shards, bags, numbers);
  LruCache cache{numbers, machine.cached_share * machine.cache_bytes};
  std::vector<std::uint32_t> times(numbers, 0);
  std::vector<double> missed(shards.size(), 0), distinct(shards.size(), 0), lookups(shards.size(), 0);
  std::size_t next_shard = 0, next_bag = 0;
  const auto take = [&](Warp& warp) {
    while (next_shard < shards.size()) {
      const Queue& q = queues[next_shard];
      const std::uint32_t begin = next_bag == 0 ? 0 : q.ends[next_bag - 1], end = q.ends[next_bag];
      warp = {q.rows + begin, q.rows + end, static_cast<std::uint32_t>(next_shard)};
      if (++next_bag == bags) ++next_shard, next_bag = 0;
      if (begin == end) continue;
      rank.longest_bag = std::max(rank.longest_bag, static_cast<double>(end - begin));
      return true;
    }
    return false;
  };
  std::vector<Warp> warps(static_cast<std::size_t>(machine.resident_warps));
  std::size_t working = 0;
  while (bags > 0 && working < warps.size() && take(warps[working])) ++working;
  while (working > 0) {
    for (std::size_t w = 0; w < working;) {
      Warp& warp = warps[w];
      const std::uint32_t number = queues[warp.shard].first_number + *warp.at;
      missed[warp.shard] += cache.touch(number, queues[warp.shard].row_bytes) ? 0 : 1;
      lookups[warp.shard] += 1;
      const std::uint32_t n = ++times[number];
      if (n == 1) distinct[warp.shard] += 1;
      rank.hottest_row = std::max(rank.hottest_row, static_cast<double>(n));
      if (++warp.at == warp.end && !take(warp)) {
        warp = warps[--working];
        continue;
      }
      ++w;
    }
  }
  for (std::size_t s = 0; s < shards.size(); ++s) {
    const double bytes = static_cast<double>(queues[s].row_bytes), columns = shards[s].columns;
    RankLookups::OfWidth& width = columns <= 32 ? rank.narrow : columns <= 64 ? rank.middle : rank.wide;
    width.gathered_bytes += lookups[s] * bytes;
    width.missed_bytes += missed[s] * bytes;
    width.distinct_bytes += distinct[s] * bytes;
    rank.lookups += lookups[s];
    rank.missed += missed[s];
    rank.distinct_rows += distinct[s];
    rank.index_bytes += kIndexBytes * (lookups[s] + static_cast<double>(bags));
    rank.output_bytes += static_cast<double>(bags) * columns * kNumberBytes;
    rank.columns += columns;
  }
  rank.bags = static_cast<double>(bags * shards.size());
  return rank;
}

RankLookups& RankLookups::operator+=(const RankLookups& other) {
  const auto add = [](OfWidth& to, const OfWidth& more) {
    to.gathered_bytes += more.gathered_bytes;
    to.missed_bytes += more.missed_bytes;
    to.distinct_bytes += more.distinct_bytes;
  };
  add(narrow, other.narrow);
  add(middle, other.middle);
  add(wide, other.wide);
  bags += other.bags;
  lookups += other.lookups;
  index_bytes += other.index_bytes;
  output_bytes += other.output_bytes;
  columns += other.columns;
  missed += other.missed;
  distinct_rows += other.distinct_rows;
  longest_bag = std::max(longest_bag, other.longest_bag);
  hottest_row = std::max(hottest_row, other.hottest_row);
  return *this;
}

double reference_forward_us(const RankLookups& r, const ReferenceMachine& m,
                            const ReferenceVariant& variant) {
  if (r.bags <= 0) return 0;
  if (variant.estimator)
    return estimated_us(r, m, [](const RankLookups::OfWidth& w) { return w.gathered_bytes; });
  const double narrow = width_factor(variant, kNarrowFactor), middle = width_factor(variant, kMiddleFactor);
  const double missed = narrow * r.narrow.missed_bytes + middle * r.middle.missed_bytes + r.wide.missed_bytes;
  const double gathered =
      narrow * r.narrow.gathered_bytes + middle * r.middle.gathered_bytes + r.wide.gathered_bytes;
  double us = std::max((missed + r.index_bytes + r.output_bytes) / m.memory_bytes_per_us,
                       gathered / m.gather_bytes_per_us);
  if (variant.narrow_rows_and_long_bags) us = std::max(us, r.longest_bag * kRowLatencyUs);
  return m.forward_start_us + us;
}

double reference_backward_us(const RankLookups& r, const ReferenceMachine& m,
                             const ReferenceVariant& variant) {
  if (r.lookups <= 0) return 0;
  if (variant.estimator) {
    return estimated_us(
        r, m, [](const RankLookups::OfWidth& w) { return w.gathered_bytes + 2 * w.distinct_bytes; });
  }
  const double narrow = width_factor(variant, kNarrowFactor), middle = width_factor(variant, kMiddleFactor);
  const auto of_width = [&](const RankLookups::OfWidth& w) {
    return (w.gathered_bytes + 2 * w.distinct_bytes) / m.memory_bytes_per_us;
  };
  return m.backward_start_us + r.lookups / m.sorted_lookups_per_us + narrow * of_width(r.narrow) +
         middle * of_width(r.middle) + of_width(r.wide) +
         (variant.hot_rows ? r.hottest_row * kHotGradientUs : 0);
}

double reference_step_us(std::span<const RankLookups> ranks, const ReferenceJob& job,
                         const ReferenceMachine& machine, const ReferenceVariant& variant) {
  const auto n = static_cast<double>(ranks.size());
  const double samples = job.batch / n;
  const DenseTimes dense = dense_times(job, samples, machine);
  double all_columns = 0, slowest = 0, most = 0;
  for (const RankLookups& r : ranks) all_columns += r.columns;
  for (const RankLookups& r : ranks) {
    slowest = std::max(slowest, reference_forward_us(r, machine, variant));
    most = std::max({most, (n - 1) * r.columns, all_columns - r.columns});
  }
  const double link = machine.link_bytes_per_us / variant.links_slower;
  const double exchange = machine.all_to_all_start_us + most * samples * kNumberBytes / link;
  const double reduction =
      machine.all_reduce_start_us + 2 * (n - 1) / n * dense.parameters * kNumberBytes / link;
  // The dense part starts at the same time on all ranks, after the vectors of all ranks have arrived.
  double begun = slowest + exchange;
  for (const RankLookups& r : ranks)
    begun = std::max(begun, reference_forward_us(r, machine, variant) + dense.bottom);
  const double gradients = begun + dense.between;
  double end = gradients + reduction;
  for (const RankLookups& r : ranks) {
    const double ready = gradients + std::max(exchange, dense.bottom_backward);
    end = std::max(end, ready + reference_backward_us(r, machine, variant));
  }
  return end + dense.update;
}

}  // namespace stepcast

// Matches the collectives of all ranks. Collectives of one communicator are in the same order on all its
// ranks, so the k-th ones belong together. Without metadata, streams take the role of communicators; if the
// order of the ranks differs, collectives are matched by their recorded ends, since all members leave a
// collective together. The ends also reveal offsets between the clocks of hosts.
#include "stepcast/rebuild/detail/collective_matching.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/statistics.h"

namespace stepcast::detail {

namespace {

// One communication kernel of a rank.
struct Entry {
  std::int32_t rank, work;
  CollectiveFacts facts;
};

// Whether two kernels can belong to the same collective by their operation. Unknown matches everything.
bool same_kind(CollectiveOp a, CollectiveOp b) {
  const auto plain = [](CollectiveOp op) {
    // NCCL runs point-to-point and all-to-all in the same kernel.
    return op == CollectiveOp::all_to_all || op == CollectiveOp::send || op == CollectiveOp::receive
               ? CollectiveOp::send_receive
               : op;
  };
  return a == b || a == CollectiveOp::unknown || b == CollectiveOp::unknown || plain(a) == plain(b);
}

// Tolerance for the recorded ends of one collective. All members leave together, so on equal clocks their
// ends differ by a few microseconds. Between hosts they differ more, but all by the same offset.
constexpr double kEndsAgreeUs = 50;
// If the ends of a set scatter more, the tolerance is this multiple of the typical scatter, at most this
// share of the distance between neighbouring collectives of a stream. Beyond that, neighbours could not be
// distinguished.
constexpr double kScatters = 3, kShareOfDistance = 0.5;
// Quantile of the deviations from the clock offset that defines the remaining uncertainty.
constexpr double kCertainShare = 0.9;
// Share of a communicator's collectives that may disagree before their order is not trusted.
constexpr double kOddShare = 0.1;

using Members = std::map<std::int32_t, std::vector<Entry>>;  // rank position -> its collectives in order

class Matcher {
 public:
  explicit Matcher(std::vector<RankGraph>& ranks) : ranks_(ranks) {
    match_.clock_shift_us.assign(ranks.size(), 0);
    ahead_us_.assign(ranks.size(), 0);
  }

  // Decides per group whether to join by order or by time, estimates the clocks from those joined by order,
  // and joins.
  CollectiveMatch run() {
    collect();
    std::vector<std::pair<std::string, std::vector<std::vector<Entry>>>> ordered;
    for (auto& [key, members] : groups_) {
      if (size_of(key) == 1) continue;
      if (members.size() < size_of(key)) {
        // A stream that only some ranks use serves smaller groups, unless ranks are missing altogether.
        if (!named_.contains(key) && ranks_.size() >= size_of(key) && members.size() >= 2) {
          by_time_.push_back(key);
        } else if (named_.contains(key) || ranks_.size() < size_of(key)) {
          match_.notes.push_back(
              fmt::format("collectives of group \"{}\" are not joined: only {} of its {} ranks have traces. "
                          "They keep their recorded durations",
                          key, members.size(), size_of(key)));
        }
        continue;
      }
      if (same_order(members))
        ordered.emplace_back(key, by_order(members));
      else
        by_time_.push_back(key);
    }
    estimate_clocks(ordered);
    for (auto& [key, collectives] : ordered) {
      // The order within a named communicator is the same on all ranks, so no times are needed.
      if (named_.contains(key)) {
        for (const auto& c : collectives) join(c);
        continue;
      }
      std::size_t odd = 0;
      for (const auto& c : collectives) odd += leave_together(c) ? 0u : 1u;
      if (static_cast<double>(odd) > kOddShare * static_cast<double>(collectives.size())) {
        by_time_.push_back(key);
        continue;
      }
      if (odd > 0)
        match_.notes.push_back(fmt::format(
            "{} of {} collectives of group \"{}\" are not joined: their recorded ends do not agree", odd,
            collectives.size(), key));
      for (const auto& c : collectives)
        if (leave_together(c)) join(c);
    }
    for (const std::string& key : by_time_) join_by_time(key);
    return std::move(match_);
  }

 private:
  [[nodiscard]] const GpuWork& work(const Entry& e) const {
    return ranks_[static_cast<std::size_t>(e.rank)].gpu[static_cast<std::size_t>(e.work)];
  }
  // Recorded times on the clock of the first rank, as far as the offset is known.
  [[nodiscard]] double start_us(const Entry& e) const {
    return work(e).start_us - ahead_us_[static_cast<std::size_t>(e.rank)];
  }
  [[nodiscard]] double end_us(const Entry& e) const {
    return work(e).end_us - ahead_us_[static_cast<std::size_t>(e.rank)];
  }

  // Number of ranks in a group: from metadata, else the world size.
  [[nodiscard]] std::size_t size_of(const std::string& key) const {
    const auto declared = group_size_.find(key);
    if (declared != group_size_.end()) return static_cast<std::size_t>(declared->second);
    const std::int32_t all = static_cast<std::int32_t>(ranks_.size());
    return static_cast<std::size_t>(std::max(ranks_.front().recorded->world_size.value_or(all), 1));
  }

  // Group -> rank -> its collectives in order of start. Without metadata, the communication streams of a
  // rank, in order of first use, take the role of communicators.
  void collect() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      RankGraph& g = ranks_[r];
      int unnamed_streams = 0;
      for (const Stream& stream : g.streams) {
        std::optional<int> number;
        for (const std::int32_t i : stream.work) {
          const GpuWork& w = g.gpu[static_cast<std::size_t>(i)];
          if (!w.communication || w.left_over) continue;
          Entry entry{static_cast<std::int32_t>(r), i, collective_facts(g, w)};
          std::string key = entry.facts.communicator;
          if (key.empty()) {
            if (!number) number = unnamed_streams++;
            key = fmt::format("communication stream {}", *number);
          } else {
            named_.insert(key);
          }
          if (entry.facts.group_size > 0) group_size_[key] = entry.facts.group_size;
          groups_[key][static_cast<std::int32_t>(r)].push_back(std::move(entry));
        }
      }
    }
  }

  // True if all members have the same number and kinds of collectives, in the same order.
  [[nodiscard]] static bool same_order(const Members& members) {
    const std::vector<Entry>& first = members.begin()->second;
    return std::ranges::all_of(members, [&](const auto& m) {
      if (m.second.size() != first.size()) return false;
      for (std::size_t k = 0; k < first.size(); ++k)
        if (!same_kind(first[k].facts.op, m.second[k].facts.op)) return false;
      return true;
    });
  }

  // The k-th collectives of all members.
  [[nodiscard]] static std::vector<std::vector<Entry>> by_order(const Members& members) {
    std::vector<std::vector<Entry>> collectives(members.begin()->second.size());
    for (const auto& [rank, list] : members)
      for (std::size_t k = 0; k < list.size(); ++k) collectives[k].push_back(list[k]);
    return collectives;
  }

  // The median distance between the ends of consecutive collectives of a group on one rank. Ends that differ
  // by more than this do not identify a collective.
  [[nodiscard]] double distance_us(
      const std::vector<std::pair<std::string, std::vector<std::vector<Entry>>>>& ordered) const {
    std::vector<double> distances;
    for (const auto& [key, collectives] : ordered)
      for (std::size_t k = 1; k < collectives.size(); ++k)
        distances.push_back(work(collectives[k].front()).end_us - work(collectives[k - 1].front()).end_us);
    return distances.empty() ? 0 : std::max(0.0, median(std::move(distances)));
  }

  // Estimates the offset between the clocks of the ranks from the ends of matched collectives. Clocks are
  // moved only if the ends of each pair of ranks agree on the offset, since a wrong match would also look
  // like an offset, and only if the offset exceeds the scatter of the ends. Offsets are propagated from the
  // first rank over pairs with common collectives.
  void estimate_clocks(const std::vector<std::pair<std::string, std::vector<std::vector<Entry>>>>& ordered) {
    // (reference, rank) -> differences of ends.
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<double>> apart;
    for (const auto& [key, collectives] : ordered) {
      for (const auto& c : collectives) {
        for (std::size_t m = 1; m < c.size(); ++m) {
          apart[{c[0].rank, c[m].rank}].push_back(work(c[m]).end_us - work(c[0]).end_us);
          apart[{c[m].rank, c[0].rank}].push_back(work(c[0]).end_us - work(c[m]).end_us);
        }
      }
    }
    const double most_us = std::max(kEndsAgreeUs, kShareOfDistance * distance_us(ordered));
    std::vector<double> ahead(ranks_.size(), 0), scattered;
    std::vector<bool> known(ranks_.size(), false);
    if (!apart.empty()) match_.clock_uncertainty_us = kEndsAgreeUs;
    std::vector<std::int32_t> reached{0};
    known[0] = true;
    for (std::size_t next = 0; next < reached.size(); ++next) {
      const std::int32_t from = reached[next];
      for (auto& [pair, values] : apart) {
        if (pair.first != from || known[static_cast<std::size_t>(pair.second)]) continue;
        std::ranges::sort(values);
        const double middle = values[values.size() / 2];
        const auto agreeing =
            std::ranges::count_if(values, [&](double v) { return std::abs(v - middle) <= most_us; });
        if (static_cast<double>(agreeing) < (1 - kOddShare) * static_cast<double>(values.size())) return;
        for (const double v : values) scattered.push_back(std::abs(v - middle));
        ahead[static_cast<std::size_t>(pair.second)] = ahead[static_cast<std::size_t>(from)] + middle;
        known[static_cast<std::size_t>(pair.second)] = true;
        reached.push_back(pair.second);
      }
    }
    if (scattered.empty()) return;
    std::ranges::sort(scattered);
    const auto certain = static_cast<std::size_t>(kCertainShare * static_cast<double>(scattered.size() - 1));
    match_.clock_uncertainty_us = std::max(kClockToleranceUs, scattered[certain]);
    ends_agree_us_ = std::clamp(kScatters * scattered[certain], kEndsAgreeUs, most_us);
    clocks_agree_us_ = match_.clock_uncertainty_us;
    ahead_us_ = ahead;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (!known[r] || std::abs(ahead[r]) <= match_.clock_uncertainty_us) continue;
      match_.clock_shift_us[r] = -ahead[r];
      match_.notes.push_back(fmt::format(
          "rank {}: clock shifted by {:+.1f} us, so that its collectives end together with those of rank {}",
          ranks_[r].rank, -ahead[r], ranks_[0].rank));
    }
  }

  // True if the recorded times are those of one collective: no member ends before the last one has started,
  // and all end together.
  [[nodiscard]] bool leave_together(const std::vector<Entry>& c) const {
    double last_start = -1e300, first_end = 1e300, last_end = -1e300;
    for (const Entry& e : c) {
      last_start = std::max(last_start, start_us(e));
      first_end = std::min(first_end, end_us(e));
      last_end = std::max(last_end, end_us(e));
    }
    return last_start <= first_end + clocks_agree_us_ && last_end - first_end <= ends_agree_us_;
  }

  // Joins collectives on streams that serve several groups: kernels of the same kind on different ranks that
  // ran at the same time and ended together.
  void join_by_time(const std::string& key) {
    std::vector<Entry> all;
    for (const auto& [rank, list] : groups_[key]) all.insert(all.end(), list.begin(), list.end());
    std::ranges::stable_sort(all, [&](const Entry& a, const Entry& b) { return end_us(a) < end_us(b); });
    std::size_t joined = 0;
    std::vector<bool> taken(all.size(), false);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (taken[i]) continue;
      std::vector<Entry> together{all[i]};
      std::vector<std::size_t> positions{i};
      for (std::size_t k = i + 1; k < all.size() && end_us(all[k]) - end_us(all[i]) <= ends_agree_us_; ++k) {
        const bool rank_there =
            std::ranges::any_of(together, [&](const Entry& e) { return e.rank == all[k].rank; });
        if (taken[k] || rank_there || !same_kind(all[i].facts.op, all[k].facts.op)) continue;
        together.push_back(all[k]);
        if (leave_together(together))
          positions.push_back(k);
        else
          together.pop_back();
      }
      if (together.size() < 2) continue;
      for (const std::size_t k : positions) taken[k] = true;
      joined += together.size();
      join(together);
    }
    match_.notes.push_back(
        fmt::format("group \"{}\": the order differs between ranks. {} of {} collective kernels were joined "
                    "by their recorded times, the others keep their recorded durations",
                    key, joined, all.size()));
  }

  // Records a collective. Its transfer time is the shortest duration of its members: the last one to arrive
  // waits least.
  void join(std::vector<Entry> members) {
    std::ranges::sort(members, {}, &Entry::rank);
    MatchedCollective collective{.transfer_us = 1e300};
    for (const Entry& e : members) {
      GpuWork& w = ranks_[static_cast<std::size_t>(e.rank)].gpu[static_cast<std::size_t>(e.work)];
      w.collective = static_cast<std::int32_t>(match_.collectives.size());
      if (collective.op == CollectiveOp::unknown) collective.op = e.facts.op;
      collective.message_bytes = std::max(collective.message_bytes, e.facts.bytes);
      collective.transfer_us = std::min(collective.transfer_us, w.length_us());
      collective.members.emplace_back(e.rank, e.work);
    }
    // NCCL runs send/receive and all-to-all with the same kernel. With more than two ranks it is an
    // all-to-all.
    if (collective.op == CollectiveOp::send_receive && members.size() > 2)
      collective.op = CollectiveOp::all_to_all;
    collective.name = std::string(to_string(collective.op));
    match_.collectives.push_back(std::move(collective));
  }

  std::vector<RankGraph>& ranks_;
  CollectiveMatch match_;
  std::vector<double> ahead_us_;         // [rank position] offset to the first rank's clock; 0: not known
  double ends_agree_us_ = kEndsAgreeUs;  // tolerance for the ends of one collective on one clock
  double clocks_agree_us_ = kClockToleranceUs;
  std::map<std::string, Members> groups_;
  std::map<std::string, std::int32_t> group_size_;
  std::set<std::string> named_;  // groups that are named in metadata
  std::vector<std::string> by_time_;
};

// Bytes of a number of elements; -1 if unknown.
double bytes_of(std::int64_t elements, DType dtype) {
  const double element = element_size(dtype).value();
  return elements >= 0 && element > 0 ? static_cast<double>(elements) * element : -1;
}

// Sets sizes that are not yet known.
void take_sizes(CollectiveFacts& facts, std::int64_t in, std::int64_t out, DType dtype) {
  if (facts.bytes >= 0) return;
  facts.bytes = bytes_of(std::max(in, out), dtype);
  facts.bytes_in = bytes_of(in, dtype);
  if (facts.bytes >= 0) facts.dtype = dtype;
}

// Adds what the trace says about a communication kernel. Facts that are already known stay.
void take(CollectiveFacts& facts, const RankGraph& g, const CollectiveInfo& info) {
  if (facts.op == CollectiveOp::unknown) facts.op = info.op;
  take_sizes(facts, info.in_elements, info.out_elements, info.dtype);
  if (facts.group_size < 0) facts.group_size = info.group_size;
  if (facts.communicator.empty() && (info.process_group.valid() || !info.group_ranks.empty())) {
    facts.group_name = std::string(g.recorded->names.text(info.process_group));
    facts.communicator = fmt::format("{}|{}", facts.group_name, fmt::join(info.group_ranks, ","));
    facts.group_ranks = info.group_ranks;
  }
}

// The same for facts from the execution trace.
void take(CollectiveFacts& facts, const EtCollective& et) {
  if (facts.op == CollectiveOp::unknown) facts.op = et.op;
  if (et.elements_in >= 0) take_sizes(facts, et.elements_in, et.elements_out, et.dtype);
}

}  // namespace

CollectiveMatch match_collectives(std::vector<RankGraph>& ranks) {
  if (ranks.size() < 2) {
    CollectiveMatch none;
    none.clock_shift_us.assign(ranks.size(), 0);
    return none;
  }
  return Matcher{ranks}.run();
}

// Sources in order of preference: arguments of the kernel, arguments of record_param_comms, the execution
// trace, the name of the kernel.
CollectiveFacts collective_facts(const RankGraph& g, const GpuWork& w) {
  CollectiveFacts facts;
  const GpuOp& op = g.recorded->gpu_ops[w.recorded];
  if (op.collective >= 0)
    take(facts, g, g.recorded->collective_infos[static_cast<std::size_t>(op.collective)]);
  const std::int32_t comm_op = w.call == kNone ? kNone : g.calls[static_cast<std::size_t>(w.call)].comm_op;
  if (comm_op != kNone) {
    const CpuOp& cpu = g.recorded->cpu_ops[static_cast<std::size_t>(comm_op)];
    if (cpu.collective >= 0)
      take(facts, g, g.recorded->collective_infos[static_cast<std::size_t>(cpu.collective)]);
    if (!g.et_node_of_op.empty() && g.execution_trace != nullptr) {
      const std::int32_t node = g.et_node_of_op[static_cast<std::size_t>(comm_op)];
      const std::int32_t c =
          node == kNone ? kNone : g.execution_trace->nodes[static_cast<std::size_t>(node)].collective;
      if (c != kNone) take(facts, g.execution_trace->collectives[static_cast<std::size_t>(c)]);
    }
  }
  if (facts.op == CollectiveOp::unknown) facts.op = parse_collective_op(g.recorded->names.text(op.name));
  return facts;
}

bool is_known(const CollectiveFacts& facts) {
  return facts.op != CollectiveOp::unknown && (facts.bytes >= 0 || facts.op == CollectiveOp::barrier);
}

Bytes message_of(const CollectiveFacts& facts) {
  const bool own = facts.op == CollectiveOp::all_to_all || facts.op == CollectiveOp::send ||
                   facts.op == CollectiveOp::receive || facts.op == CollectiveOp::send_receive;
  const double bytes = own && facts.bytes_in > 0 ? facts.bytes_in : facts.bytes;
  return Bytes{std::max(bytes, 0.0)};
}

// Groups are added in the order of ranks and work, so that equal groups are shared.
std::vector<std::vector<GroupId>> add_groups(Program& program, const std::vector<RankGraph>& ranks,
                                             const CollectiveMatch& match) {
  std::vector<std::uint32_t> present;  // ascending, as the ranks are
  for (const RankGraph& g : ranks) present.push_back(static_cast<std::uint32_t>(g.rank));
  std::vector<std::uint32_t> world = present;
  const auto size = ranks.front().recorded->world_size;
  const bool world_known = (size && *size > 0) || present.size() > 1;
  if (size && *size > 0) {
    world.resize(static_cast<std::size_t>(*size));
    std::iota(world.begin(), world.end(), 0U);
  }
  const auto group_of = [&](const RankGraph& g, const GpuWork& w) {
    const CollectiveFacts facts = collective_facts(g, w);
    RankGroup group;
    if (!facts.group_ranks.empty()) {
      for (const std::int32_t rank : facts.group_ranks)
        group.ranks.push_back(static_cast<std::uint32_t>(rank));
    } else if (w.collective != kNone) {
      for (const auto& [position, work] : match.collectives[static_cast<std::size_t>(w.collective)].members)
        group.ranks.push_back(present[static_cast<std::size_t>(position)]);
    } else if (world_known &&
               (facts.group_size < 0 || static_cast<std::size_t>(facts.group_size) == world.size())) {
      group.ranks = world;
    }
    std::ranges::sort(group.ranks);
    if (!facts.group_name.empty())
      group.label = facts.group_name;
    else if (group.ranks == world || (group.ranks.empty() && facts.group_size < 0))
      group.label = "all ranks";
    else if (group.ranks.empty())
      group.label = fmt::format("{} ranks", facts.group_size);
    else
      group.label = fmt::format("ranks {}", fmt::join(group.ranks, ","));
    return program.add_group(std::move(group));
  };
  std::vector<std::vector<GroupId>> groups;
  for (const RankGraph& g : ranks) {
    std::vector<GroupId>& of_rank = groups.emplace_back(g.gpu.size());
    for (std::size_t i = 0; i < g.gpu.size(); ++i)
      if (g.gpu[i].communication) of_rank[i] = group_of(g, g.gpu[i]);
  }
  return groups;
}

}  // namespace stepcast::detail

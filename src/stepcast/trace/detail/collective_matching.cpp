#include "stepcast/trace/detail/collective_matching.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stepcast::detail {
namespace {

// What metadata tells of one communication kernel: its own args, its record_param_comms' args, or the
// execution trace.
struct Facts {
  CollectiveOp op = CollectiveOp::unknown;
  double bytes = -1;
  std::string group;  // empty: not known
  std::int32_t group_size = -1;
};

void take(Facts& facts, const RankGraph& g, const CollectiveInfo& info) {
  if (facts.op == CollectiveOp::unknown) facts.op = info.op;
  const double element = element_size(info.dtype).value();
  const std::int64_t elements = std::max(info.in_elements, info.out_elements);
  if (facts.bytes < 0 && elements >= 0 && element > 0) facts.bytes = static_cast<double>(elements) * element;
  if (facts.group_size < 0) facts.group_size = info.group_size;
  if (facts.group.empty() && (info.process_group.valid() || !info.group_ranks.empty()))
    facts.group =
        fmt::format("{}|{}", g.recorded->names.text(info.process_group), fmt::join(info.group_ranks, ","));
}

Facts facts_of(const RankGraph& g, const GpuWork& w) {
  Facts facts;
  const GpuOp& op = g.recorded->gpu_ops[w.recorded];
  if (op.collective >= 0)
    take(facts, g, g.recorded->collective_infos[static_cast<std::size_t>(op.collective)]);
  if (w.call != kNone) {
    const std::int32_t comm_op = g.calls[static_cast<std::size_t>(w.call)].comm_op;
    if (comm_op != kNone) {
      const CpuOp& cpu = g.recorded->cpu_ops[static_cast<std::size_t>(comm_op)];
      if (cpu.collective >= 0)
        take(facts, g, g.recorded->collective_infos[static_cast<std::size_t>(cpu.collective)]);
      if (!g.et_node_of_op.empty() && g.execution_trace != nullptr) {
        const std::int32_t node = g.et_node_of_op[static_cast<std::size_t>(comm_op)];
        const std::int32_t c =
            node == kNone ? kNone : g.execution_trace->nodes[static_cast<std::size_t>(node)].collective;
        if (c != kNone) {
          const EtCollective& et = g.execution_trace->collectives[static_cast<std::size_t>(c)];
          if (facts.op == CollectiveOp::unknown) facts.op = et.op;
          const double element = element_size(et.dtype).value();
          if (facts.bytes < 0 && et.elements_in >= 0 && element > 0)
            facts.bytes = static_cast<double>(std::max(et.elements_in, et.elements_out)) * element;
        }
      }
    }
  }
  if (facts.op == CollectiveOp::unknown) facts.op = parse_collective_op(g.recorded->names.text(op.name));
  return facts;
}

struct Entry {
  std::int32_t rank, work;
  Facts facts;
};

bool same_kind(CollectiveOp a, CollectiveOp b) {
  const auto plain = [](CollectiveOp op) {
    // NCCL runs point-to-point and all-to-all in the same kernel.
    return op == CollectiveOp::all_to_all || op == CollectiveOp::send || op == CollectiveOp::receive
               ? CollectiveOp::send_receive
               : op;
  };
  return a == b || a == CollectiveOp::unknown || b == CollectiveOp::unknown || plain(a) == plain(b);
}

}  // namespace

CollectiveMatch match_collectives(std::vector<RankGraph>& ranks) {
  CollectiveMatch match;
  if (ranks.size() < 2) return match;

  // group -> rank -> its collectives in order of start on the stream. Without metadata the communication
  // streams themselves, in order of their first use, stand for the communicators.
  std::map<std::string, std::map<std::int32_t, std::vector<Entry>>> groups;
  std::map<std::string, std::int32_t> group_size;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    RankGraph& g = ranks[r];
    int unnamed_streams = 0;
    for (const Stream& stream : g.streams) {
      std::optional<int> number;
      for (const std::int32_t i : stream.work) {
        const GpuWork& w = g.gpu[static_cast<std::size_t>(i)];
        if (!w.communication || w.call == kNone) continue;
        Entry entry{static_cast<std::int32_t>(r), i, facts_of(g, w)};
        std::string key = entry.facts.group;
        if (key.empty()) {
          if (!number) number = unnamed_streams++;
          key = fmt::format("communication stream {}", *number);
        }
        if (entry.facts.group_size > 0) group_size[key] = entry.facts.group_size;
        groups[key][static_cast<std::int32_t>(r)].push_back(std::move(entry));
      }
    }
  }

  const std::int32_t world =
      ranks.front().recorded->world_size.value_or(static_cast<std::int32_t>(ranks.size()));
  for (auto& [key, members] : groups) {
    const auto declared = group_size.find(key);
    const std::size_t size =
        static_cast<std::size_t>(declared != group_size.end() ? declared->second : world);
    if (size == 1) continue;
    if (members.size() < size) {
      match.notes.push_back(fmt::format(
          "collectives of group \"{}\" are not joined: traces of {} of its {} ranks are here; they keep "
          "their recorded durations",
          key, members.size(), size));
      continue;
    }
    const std::size_t count = members.begin()->second.size();
    const auto odd =
        std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.second.size() != count; });
    if (odd != members.end()) {
      match.notes.push_back(
          fmt::format("collectives of group \"{}\" are not joined: rank {} has {} in this step, rank {} has "
                      "{}; they keep their recorded durations",
                      key, ranks[static_cast<std::size_t>(members.begin()->first)].rank, count,
                      ranks[static_cast<std::size_t>(odd->first)].rank, odd->second.size()));
      continue;
    }
    for (std::size_t k = 0; k < count; ++k) {
      MatchedCollective collective;
      const Entry& first = members.begin()->second[k];
      collective.transfer_us = 1e300;
      bool agree = true;
      for (const auto& [rank, list] : members) {
        const Entry& e = list[k];
        const GpuWork& w = ranks[static_cast<std::size_t>(rank)].gpu[static_cast<std::size_t>(e.work)];
        agree = agree && same_kind(first.facts.op, e.facts.op);
        if (collective.op == CollectiveOp::unknown) collective.op = e.facts.op;
        collective.message_bytes = std::max(collective.message_bytes, e.facts.bytes);
        collective.transfer_us = std::min(collective.transfer_us, w.length_us());
        collective.members.emplace_back(rank, e.work);
      }
      if (!agree) {
        match.notes.push_back(fmt::format(
            "collective {} of group \"{}\" is not joined: the ranks disagree about its kind", k, key));
        continue;
      }
      collective.name = std::string(to_string(collective.op));
      for (const auto& [rank, w] : collective.members)
        ranks[static_cast<std::size_t>(rank)].gpu[static_cast<std::size_t>(w)].collective =
            static_cast<std::int32_t>(match.collectives.size());
      match.collectives.push_back(std::move(collective));
    }
  }
  return match;
}

}  // namespace stepcast::detail

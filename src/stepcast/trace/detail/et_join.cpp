#include "stepcast/trace/detail/et_join.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

namespace stepcast::detail {
namespace {

using Index = std::int32_t;

// Nodes that stand for the process or a thread: the profiler trace has no event for them.
bool only_in_execution_trace(std::string_view name) { return name.starts_with("[pytorch|profiler|"); }

// Positions in `text` where `pattern` begins (Knuth-Morris-Pratt), the first two are enough.
std::vector<std::size_t> find_runs(const std::vector<std::uint32_t>& pattern,
                                   const std::vector<std::uint32_t>& text) {
  std::vector<std::size_t> found;
  if (pattern.empty() || pattern.size() > text.size()) return found;
  std::vector<std::size_t> fail(pattern.size(), 0);
  for (std::size_t i = 1, k = 0; i < pattern.size(); ++i) {
    while (k > 0 && pattern[i] != pattern[k]) k = fail[k - 1];
    if (pattern[i] == pattern[k]) ++k;
    fail[i] = k;
  }
  for (std::size_t i = 0, k = 0; i < text.size(); ++i) {
    while (k > 0 && (k == pattern.size() || text[i] != pattern[k])) k = fail[k - 1];
    if (text[i] == pattern[k]) ++k;
    if (k == pattern.size()) {
      found.push_back(i + 1 - k);
      if (found.size() == 2) break;
      k = fail[k - 1];
    }
  }
  return found;
}

}  // namespace

Result<EtJoin> join_execution_trace(const RecordedRank& recorded, const ExecutionTrace& et) {
  EtJoin join;
  join.node_of_op.assign(recorded.cpu_ops.size(), -1);

  // Recorded ops per thread, in the order they began.
  std::vector<std::vector<Index>> ops(recorded.threads.size());
  for (std::size_t i = 0; i < recorded.cpu_ops.size(); ++i) {
    const CpuOp& op = recorded.cpu_ops[i];
    if (op.kind == CpuOp::Kind::step || !op.thread.valid()) continue;
    ops[op.thread.index()].push_back(static_cast<Index>(i));
  }
  for (auto& list : ops) {
    std::stable_sort(list.begin(), list.end(), [&](Index a, Index b) {
      return recorded.cpu_ops[static_cast<std::size_t>(a)].order <
             recorded.cpu_ops[static_cast<std::size_t>(b)].order;
    });
  }
  std::map<std::int32_t, std::vector<Index>> nodes;
  for (std::size_t i = 0; i < et.nodes.size(); ++i) {
    if (only_in_execution_trace(et.names.text(et.nodes[i].name))) continue;
    nodes[et.nodes[i].thread].push_back(static_cast<Index>(i));
    ++join.nodes;
  }
  for (auto& [thread, list] : nodes) {
    std::stable_sort(list.begin(), list.end(), [&](Index a, Index b) {
      return et.nodes[static_cast<std::size_t>(a)].order < et.nodes[static_cast<std::size_t>(b)].order;
    });
  }

  // Names of both files in one numbering.
  std::unordered_map<std::uint32_t, std::uint32_t> et_name;
  const auto name_of_node = [&](Index i) {
    const NameId id = et.nodes[static_cast<std::size_t>(i)].name;
    const auto [it, fresh] = et_name.try_emplace(id.index(), 0xffffffffu);
    if (fresh) {
      if (const NameId same = recorded.names.find(et.names.text(id)); same.valid()) it->second = same.index();
    }
    return it->second;
  };
  const auto name_of_op = [&](Index i) { return recorded.cpu_ops[static_cast<std::size_t>(i)].name.index(); };

  std::vector<bool> thread_used(ops.size(), false);
  std::vector<std::int32_t> open_threads;
  for (const auto& [et_thread, list] : nodes) {
    std::vector<std::uint32_t> pattern;
    pattern.reserve(list.size());
    for (const Index i : list) pattern.push_back(name_of_node(i));
    bool done = false;
    for (std::size_t t = 0; t < ops.size() && !done; ++t) {
      if (thread_used[t] || ops[t].size() < list.size()) continue;
      std::vector<std::uint32_t> text;
      text.reserve(ops[t].size());
      for (const Index i : ops[t]) text.push_back(name_of_op(i));
      const auto runs = find_runs(pattern, text);
      if (runs.empty()) continue;
      for (std::size_t k = 0; k < list.size(); ++k)
        join.node_of_op[static_cast<std::size_t>(ops[t][runs[0] + k])] = list[k];
      join.joined += list.size();
      thread_used[t] = true;
      done = true;
    }
    if (!done) open_threads.push_back(et_thread);
  }

  // No exact run: a constant offset between ET order and the recorded order, voted for by the rarer names.
  if (!open_threads.empty()) {
    constexpr std::size_t kRareName = 32;  // occurrences; common names would vote for every distance
    std::unordered_map<std::int64_t, Index> op_by_order;
    std::unordered_map<std::uint32_t, std::vector<Index>> ops_named, nodes_named;
    for (const auto& thread_ops : ops) {
      for (const Index i : thread_ops) {
        op_by_order[recorded.cpu_ops[static_cast<std::size_t>(i)].order] = i;
        ops_named[name_of_op(i)].push_back(i);
      }
    }
    for (const std::int32_t thread : open_threads) {
      for (const Index i : nodes[thread]) nodes_named[name_of_node(i)].push_back(i);
    }
    std::map<std::int64_t, int> votes;
    for (const auto& [name, same_nodes] : nodes_named) {
      const auto same_ops = ops_named.find(name);
      if (same_ops == ops_named.end() || same_nodes.size() > kRareName || same_ops->second.size() > kRareName)
        continue;
      for (const Index node : same_nodes) {
        for (const Index op : same_ops->second)
          ++votes[recorded.cpu_ops[static_cast<std::size_t>(op)].order -
                  et.nodes[static_cast<std::size_t>(node)].order];
      }
    }
    const auto best = std::max_element(votes.begin(), votes.end(),
                                       [](const auto& x, const auto& y) { return x.second < y.second; });
    if (best != votes.end()) {
      for (const std::int32_t thread : open_threads) {
        for (const Index i : nodes[thread]) {
          const auto op = op_by_order.find(et.nodes[static_cast<std::size_t>(i)].order + best->first);
          if (op == op_by_order.end() || name_of_op(op->second) != name_of_node(i)) continue;
          join.node_of_op[static_cast<std::size_t>(op->second)] = i;
          ++join.joined;
        }
      }
    }
  }

  if (join.nodes > 0 && join.joined * 2 < join.nodes) {
    return Error::at(et.file, "the execution trace",
                     fmt::format("does not belong to the profiler trace {}", recorded.file))
        .found(fmt::format("{} of {} operators in the same order", join.joined, join.nodes))
        .expected("the operators of one iteration of that trace")
        .advice("give the execution trace that was recorded in the same run and rank, or leave it out");
  }
  return join;
}

}  // namespace stepcast::detail

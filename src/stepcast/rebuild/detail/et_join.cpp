// Joins operators of a profiler trace with nodes of an execution trace by searching sequences of names. The
// execution trace usually has one iteration and the profiler trace several, so each thread of the execution
// trace is a pattern that may occur several times in the recorded thread (Knuth-Morris-Pratt).
#include "stepcast/rebuild/detail/et_join.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

namespace stepcast::detail {
namespace {

using Index = std::int32_t;
using Names = std::vector<std::uint32_t>;

constexpr std::uint32_t kNoName = 0xffffffff;
constexpr Index kNoNode = -1;

// Positions in `text` at which `pattern` starts, without overlaps. O(length of both).
std::vector<std::size_t> find_runs(const Names& pattern, const Names& text) {
  std::vector<std::size_t> found;
  if (pattern.empty() || pattern.size() > text.size()) return found;
  std::vector<std::size_t> fail(pattern.size(), 0);
  for (std::size_t i = 1, k = 0; i < pattern.size(); ++i) {
    while (k > 0 && pattern[i] != pattern[k]) k = fail[k - 1];
    if (pattern[i] == pattern[k]) ++k;
    fail[i] = k;
  }
  for (std::size_t i = 0, k = 0; i < text.size(); ++i) {
    while (k > 0 && text[i] != pattern[k]) k = fail[k - 1];
    if (text[i] == pattern[k]) ++k;
    if (k == pattern.size()) {
      found.push_back(i + 1 - k);
      k = 0;
    }
  }
  return found;
}

// Which names of two threads are compared, of those that both files contain. Each level is tried after the
// previous one failed.
enum class Compared : std::uint8_t {
  all,
  operators,  // without annotations
  common,     // only names that occur on both threads
};

// Joins one pair of files.
class Joiner {
 public:
  Joiner(const RecordedRank& recorded, const ExecutionTrace& et) : r_(recorded), et_(et) {
    join_.node_of_op.assign(r_.cpu_ops.size(), kNoNode);
    join_.repetition_of_op.assign(r_.cpu_ops.size(), kNoNode);
    list_ops();
    list_nodes();
  }

  // Threads are joined on the strictest level first. Threads that no level joins use a constant offset.
  EtJoin run() {
    std::vector<Index> open = threads_in_order();
    for (const Compared compared : {Compared::all, Compared::operators, Compared::common})
      std::erase_if(open, [&](Index thread) { return join_thread(thread, compared); });
    if (!open.empty()) join_by_offset(open);
    std::vector<bool> used(et_.nodes.size(), false);
    for (const Index node : join_.node_of_op)
      if (node != kNoNode) used[static_cast<std::size_t>(node)] = true;
    join_.joined = static_cast<std::uint64_t>(std::ranges::count(used, true));
    return std::move(join_);
  }

 private:
  // Recorded operators per thread in the order of their start, with names that both files contain.
  void list_ops() {
    ops_.resize(r_.threads.size());
    std::vector<bool> in_et(r_.names.size(), false);
    for (const EtNode& node : et_.nodes)
      if (const NameId same = r_.names.find(et_.names.text(node.name)); same.valid())
        in_et[same.index()] = true;
    is_annotation_.assign(r_.names.size(), false);
    is_op_name_.assign(r_.names.size(), false);
    for (std::size_t i = 0; i < r_.cpu_ops.size(); ++i) {
      const CpuOp& op = r_.cpu_ops[i];
      if (op.kind == CpuOp::Kind::step || !op.thread.valid() || !in_et[op.name.index()]) continue;
      is_op_name_[op.name.index()] = true;
      if (op.kind == CpuOp::Kind::annotation) is_annotation_[op.name.index()] = true;
      ops_[op.thread.index()].push_back(static_cast<Index>(i));
    }
    for (auto& list : ops_)
      std::ranges::stable_sort(list, [&](Index a, Index b) { return order(a) < order(b); });
  }

  // Nodes per thread in their order, likewise.
  void list_nodes() {
    name_of_node_.assign(et_.nodes.size(), kNoName);
    for (std::size_t i = 0; i < et_.nodes.size(); ++i) {
      const NameId same = r_.names.find(et_.names.text(et_.nodes[i].name));
      if (!same.valid() || !is_op_name_[same.index()]) {
        ++join_.only_in_execution_trace;
        continue;
      }
      ++join_.nodes;
      name_of_node_[i] = same.index();
      nodes_[et_.nodes[i].thread].push_back(static_cast<Index>(i));
    }
    for (auto& [thread, list] : nodes_) {
      std::ranges::stable_sort(list, [&](Index a, Index b) { return node_order(a) < node_order(b); });
    }
  }

  // The order in which threads are joined. The first one determines the iterations: the thread that started
  // first and is not a helper. The others follow by size, so that a thread with a few common operators does
  // not claim the recorded thread of another one.
  [[nodiscard]] std::vector<Index> threads_in_order() const {
    constexpr std::size_t kFewNodes = 8;
    std::vector<Index> threads;
    for (const auto& [thread, list] : nodes_) threads.push_back(thread);
    const auto size = [&](Index t) { return nodes_.at(t).size(); };
    std::ranges::stable_sort(threads, [&](Index a, Index b) { return size(a) > size(b); });
    const auto first = std::ranges::min_element(threads, [&](Index a, Index b) {
      const bool few_a = size(a) < kFewNodes, few_b = size(b) < kFewNodes;
      if (few_a != few_b) return few_b;
      return node_order(nodes_.at(a).front()) < node_order(nodes_.at(b).front());
    });
    if (first != threads.end()) std::rotate(threads.begin(), first, std::next(first));
    return threads;
  }

  // Links all occurrences of the names of an ET thread in the first recorded thread that contains them. False
  // if there is none. At least half of the nodes must remain after reduce().
  bool join_thread(Index et_thread, Compared compared) {
    for (std::size_t t = 0; t < ops_.size(); ++t) {
      if (thread_of_ops_.contains(t)) continue;
      std::vector<Index> list = nodes_.at(et_thread), ops = ops_[t];
      reduce(compared, list, ops);
      if (list.size() * 2 < nodes_.at(et_thread).size()) continue;
      Names pattern, text;
      for (const Index i : list) pattern.push_back(name_of_node(i));
      for (const Index i : ops) text.push_back(name_of_op(i));
      const std::vector<std::size_t> runs = find_runs(pattern, text);
      if (runs.empty()) continue;
      const bool leads = iteration_begin_.empty();
      for (const std::size_t run : runs) {
        const Nanoseconds begin = op_at(ops[run]).start;
        if (leads) iteration_begin_.push_back(begin);
        const Index iteration = iteration_at(begin);
        if (!leads && !taken_.insert({et_thread, iteration}).second) continue;  // by an earlier occurrence
        for (std::size_t k = 0; k < list.size(); ++k) link(ops[run + k], list[k], iteration);
      }
      thread_of_ops_.insert(t);
      return true;
    }
    return false;
  }

  // Drops the names that are not compared on this level.
  void reduce(Compared compared, std::vector<Index>& nodes, std::vector<Index>& ops) const {
    if (compared == Compared::all) return;
    std::erase_if(nodes, [&](Index i) { return is_annotation_[name_of_node(i)]; });
    std::erase_if(ops, [&](Index i) { return is_annotation_[name_of_op(i)]; });
    if (compared == Compared::operators) return;
    std::unordered_set<std::uint32_t> of_nodes, of_ops;
    for (const Index i : nodes) of_nodes.insert(name_of_node(i));
    for (const Index i : ops) of_ops.insert(name_of_op(i));
    std::erase_if(nodes, [&](Index i) { return !of_ops.contains(name_of_node(i)); });
    std::erase_if(ops, [&](Index i) { return !of_nodes.contains(name_of_op(i)); });
  }

  // The iteration at this time. Operators before the first iteration, such as prefetching, count as the first
  // one.
  [[nodiscard]] Index iteration_at(Nanoseconds time) const {
    const auto after = std::upper_bound(iteration_begin_.begin(), iteration_begin_.end(), time);
    return std::max<Index>(0, static_cast<Index>(after - iteration_begin_.begin()) - 1);
  }

  // Fallback for threads without a complete match: finds the most frequent difference between the two
  // numberings, with votes of names that are rare, and links nodes at this offset if the names agree.
  void join_by_offset(const std::vector<Index>& threads) {
    // Most occurrences of a name that votes; common names would vote for every offset.
    constexpr std::size_t kRareName = 32;
    std::unordered_map<std::int64_t, Index> op_by_order;
    std::unordered_map<std::uint32_t, std::vector<Index>> ops_named, nodes_named;
    for (std::size_t i = 0; i < r_.cpu_ops.size(); ++i) {
      const CpuOp& op = r_.cpu_ops[i];
      if (op.kind == CpuOp::Kind::step || !op.thread.valid()) continue;
      op_by_order[op.order] = static_cast<Index>(i);
      ops_named[op.name.index()].push_back(static_cast<Index>(i));
    }
    for (const Index thread : threads)
      for (const Index i : nodes_.at(thread)) nodes_named[name_of_node(i)].push_back(i);
    std::map<std::int64_t, int> votes;
    for (const auto& [name, same_nodes] : nodes_named) {
      const auto same_ops = ops_named.find(name);
      if (same_ops == ops_named.end() || same_nodes.size() > kRareName || same_ops->second.size() > kRareName)
        continue;
      for (const Index node : same_nodes)
        for (const Index op : same_ops->second) ++votes[order(op) - node_order(node)];
    }
    const auto best =
        std::ranges::max_element(votes, [](const auto& x, const auto& y) { return x.second < y.second; });
    if (best == votes.end()) return;
    for (const Index thread : threads) {
      for (const Index i : nodes_.at(thread)) {
        const auto op = op_by_order.find(node_order(i) + best->first);
        if (op == op_by_order.end() || name_of_op(op->second) != name_of_node(i)) continue;
        link(op->second, i, iteration_begin_.empty() ? 0 : iteration_at(op_at(op->second).start));
      }
    }
  }

  void link(Index op, Index node, Index repetition) {
    join_.node_of_op[static_cast<std::size_t>(op)] = node;
    join_.repetition_of_op[static_cast<std::size_t>(op)] = repetition;
  }

  [[nodiscard]] const CpuOp& op_at(Index i) const { return r_.cpu_ops[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::int64_t order(Index op) const { return op_at(op).order; }
  [[nodiscard]] std::uint32_t name_of_op(Index op) const { return op_at(op).name.index(); }
  [[nodiscard]] std::uint32_t name_of_node(Index node) const {
    return name_of_node_[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] std::int64_t node_order(Index node) const {
    return et_.nodes[static_cast<std::size_t>(node)].order;
  }

  const RecordedRank& r_;
  const ExecutionTrace& et_;
  std::vector<std::vector<Index>> ops_;           // [recorded thread]
  std::map<Index, std::vector<Index>> nodes_;     // [ET thread]
  Names name_of_node_;                            // name numbers of the profiler trace
  std::vector<bool> is_op_name_, is_annotation_;  // [name of the profiler trace]
  std::set<std::size_t> thread_of_ops_;           // recorded threads that are already joined
  std::vector<Nanoseconds> iteration_begin_;      // of the thread that was joined first
  std::set<std::pair<Index, Index>> taken_;       // (ET thread, iteration)
  EtJoin join_;
};

}  // namespace

Result<EtJoin> join_execution_trace(const RecordedRank& recorded, const ExecutionTrace& et) {
  EtJoin join = Joiner{recorded, et}.run();
  const std::uint64_t all = join.nodes + join.only_in_execution_trace;
  if (all > 0 && join.joined * 2 <= join.nodes) {
    return Error::at(et.file, "the execution trace",
                     fmt::format("does not belong to the profiler trace {}", recorded.file))
        .found(fmt::format("{} of {} operators in the same order", join.joined, all))
        .expected("the operators of one iteration of that trace")
        .advice("give the execution trace that was recorded in the same run and rank, or leave it out");
  }
  return join;
}

}  // namespace stepcast::detail

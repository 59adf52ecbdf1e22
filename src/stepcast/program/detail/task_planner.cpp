#include "stepcast/program/detail/task_planner.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stepcast/program/detail/program_check.h"

namespace stepcast::detail {
namespace {

// Topological sort of a graph with four kinds of nodes: in-ports and tasks of instances, ends of collective
// tasks, and one node per collective that is reached when every required member has arrived.
class TaskPlanner {
 public:
  TaskPlanner(const Program& program, ExecutionOrder& order) : program_(program), order_(order) {
    number_nodes();
    add_waits();
  }

  Status run() {
    sort_waits();
    ready_.resize(program_.rank_classes().size());
    for (std::uint32_t node = 0; node < nodes_.size(); ++node)
      if (waits_[node] == 0) make_ready(node);
    for (bool progress = true; progress;) {
      progress = false;
      for (auto& ready : ready_) {
        while (!ready.empty()) {
          const std::uint32_t node = ready.top();
          ready.pop();
          emit(node);
          release_followers(node);
          progress = true;
        }
      }
    }
    if (done_ == nodes_.size()) return Ok{};
    return circle();
  }

 private:
  enum class NodeKind : std::uint8_t { port, task, end, joined };
  struct Node {
    NodeKind kind;
    std::uint32_t rank_class;  // of `joined` nodes: the collective
    std::uint32_t instance;
    std::uint32_t index;  // port: in-port; task: task; end: position among the collective tasks of the block
  };

  // Numbers the nodes of each instance consecutively: in-ports, then tasks, then ends of collective tasks.
  // The nodes of collectives follow after all instances.
  void number_nodes() {
    for (std::uint32_t c = 0; c < program_.rank_classes().size(); ++c) {
      const auto& instances = program_.rank_classes()[c].instances;
      for (std::uint32_t i = 0; i < instances.size(); ++i) {
        first_node_.push_back(static_cast<std::uint32_t>(nodes_.size()));
        const Block& block = program_.block(instances[i].block);
        for (std::uint32_t p = 0; p < block.in_ports().size(); ++p)
          nodes_.push_back({NodeKind::port, c, i, p});
        for (std::uint32_t t = 0; t < block.task_count(); ++t) nodes_.push_back({NodeKind::task, c, i, t});
        for (std::uint32_t k = 0; k < block.collective_tasks().size(); ++k)
          nodes_.push_back({NodeKind::end, c, i, k});
      }
    }
    first_joined_ = static_cast<std::uint32_t>(nodes_.size());
    for (std::uint32_t k = 0; k < program_.collectives().size(); ++k)
      nodes_.push_back({NodeKind::joined, k, 0, 0});
  }

  std::uint32_t node_of_task(std::uint32_t c, std::uint32_t i, std::uint32_t task) const {
    const BlockInstance& instance = program_.rank_classes()[c].instances[i];
    const std::uint32_t first = first_node_[order_.first_instance[c] + i];
    return first + static_cast<std::uint32_t>(program_.block(instance.block).in_ports().size()) + task;
  }
  // The end of a task. It is a separate node only for collectives; other tasks end when they are evaluated.
  std::uint32_t node_of_end(std::uint32_t c, std::uint32_t i, std::uint32_t task) const {
    const Block& block = program_.block_of(RankClassId{c}, InstanceId{i});
    if (block.tasks()[task].kind != TaskKind::collective) return node_of_task(c, i, task);
    return node_of_task(c, i, block.task_count()) +
           static_cast<std::uint32_t>(collective_position(block, TaskId{task}));
  }
  std::uint32_t node_of_moment(std::uint32_t c, std::uint32_t i, Moment moment) const {
    const BlockInstance& instance = program_.rank_classes()[c].instances[i];
    const std::uint32_t first = first_node_[order_.first_instance[c] + i];
    const std::uint32_t tasks = program_.block(instance.block).task_count();
    if (moment.code() >= 2 * tasks) return first + (moment.code() - 2 * tasks);
    const std::uint32_t task = moment.code() / 2;
    return moment.code() % 2 == 0 ? node_of_task(c, i, task) : node_of_end(c, i, task);
  }

  // `before` must be evaluated before `node`.
  void add_wait(std::uint32_t node, std::uint32_t before) { pairs_.push_back({before, node}); }

  void add_waits() {
    for (std::uint32_t c = 0; c < program_.rank_classes().size(); ++c) {
      const RankClass& rank_class = program_.rank_classes()[c];
      std::vector<std::uint32_t> lane_free(rank_class.lanes.size(), kNoTask);
      for (std::uint32_t i = 0; i < rank_class.instances.size(); ++i) add_waits_of(c, i, lane_free);
    }
    for (std::uint32_t k = 0; k < program_.collectives().size(); ++k) add_waits_of_collective(k);
  }

  // Dependencies inside a class: in-ports on out-ports, tasks on the previous task of their lane and on their
  // edges. `lane_free` contains the last node of each lane, over all instances so far.
  void add_waits_of(std::uint32_t c, std::uint32_t i, std::vector<std::uint32_t>& lane_free) {
    const BlockInstance& instance = program_.rank_classes()[c].instances[i];
    const Block& block = program_.block(instance.block);
    const std::size_t flat = order_.first_instance[c] + i;
    for (std::uint32_t p = 0; p < block.in_ports().size(); ++p) {
      const PortSource& source = order_.port_sources[order_.first_port[flat] + p];
      if (source.instance == PortSource::kStartOffset) continue;
      add_wait(first_node_[flat] + p, node_of_moment(c, source.instance, source.moment));
    }
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      const std::uint32_t node = node_of_task(c, i, t);
      std::uint32_t& free = lane_free[bound_lane(instance, block.lane_codes()[t])];
      if (free != kNoTask) add_wait(node, free);
      free = node_of_end(c, i, t);
      for (std::uint32_t e = block.first_edge()[t]; e < block.first_edge()[t + 1]; ++e)
        add_wait(node, node_of_moment(c, i, Moment{block.sources()[e]}));
    }
  }

  // A collective is joined when all members have arrived, or its root if it is rooted. Members that wait for
  // others end after that.
  void add_waits_of_collective(std::uint32_t k) {
    const Collective& collective = program_.collectives()[k];
    for (std::uint32_t m = 0; m < collective.members.size(); ++m) {
      const CollectiveMember& member = collective.members[m];
      const std::uint32_t c = member.rank_class.index(), i = member.instance.index(), t = member.task.index();
      const std::uint32_t arrival = node_of_task(c, i, t);
      if (collective.kind != CollectiveKind::rooted_from || m == collective.root)
        add_wait(first_joined_ + k, arrival);
      add_wait(node_of_end(c, i, t), arrival);
      if (waits_for_others(collective, m)) add_wait(node_of_end(c, i, t), first_joined_ + k);
    }
  }

  // Turns the pairs into the number of open dependencies and the list of followers of each node (CSR).
  void sort_waits() {
    waits_.assign(nodes_.size(), 0);
    first_follower_.assign(nodes_.size() + 1, 0);
    for (const Wait& w : pairs_) {
      ++waits_[w.node];
      ++first_follower_[w.before + 1];
    }
    for (std::size_t n = 0; n < nodes_.size(); ++n) first_follower_[n + 1] += first_follower_[n];
    followers_.resize(pairs_.size());
    std::vector<std::size_t> next(first_follower_.begin(), first_follower_.end() - 1);
    for (const Wait& w : pairs_) followers_[next[w.before]++] = w.node;
  }

  // Called when the last dependency of a node is done. Nodes of collectives are finished at once; others are
  // queued per class, so that consecutive tasks become one sweep.
  void make_ready(std::uint32_t node) {
    if (nodes_[node].kind != NodeKind::joined) {
      ready_[nodes_[node].rank_class].push(node);
      return;
    }
    const std::uint32_t k = nodes_[node].rank_class;
    if (program_.collectives()[k].kind == CollectiveKind::all) emit_complete(k, OrderStep::kAllMembers);
    release_followers(node);
  }

  void release_followers(std::uint32_t node) {
    ++done_;
    for (std::size_t f = first_follower_[node]; f < first_follower_[node + 1]; ++f)
      if (--waits_[followers_[f]] == 0) make_ready(followers_[f]);
  }

  void emit_complete(std::uint32_t collective, std::uint32_t member) {
    OrderStep step;
    step.kind = OrderStep::Kind::complete;
    step.collective = collective;
    step.member = member;
    order_.steps.push_back(step);
  }

  // Appends the step for a node, or extends the last sweep if the node is its next task.
  void emit(std::uint32_t node) {
    const Node& n = nodes_[node];
    if (n.kind == NodeKind::end) {
      const std::size_t flat = order_.first_instance[n.rank_class] + n.instance;
      const CollectiveMembership m = order_.memberships[order_.first_membership[flat] + n.index];
      const Collective& collective = program_.collectives()[m.collective];
      if (collective.kind == CollectiveKind::rooted_from && m.member != collective.root)
        emit_complete(m.collective, m.member);
      return;
    }
    if (n.kind == NodeKind::task && !order_.steps.empty()) {
      OrderStep& last = order_.steps.back();
      if (last.kind == OrderStep::Kind::sweep && last.rank_class == n.rank_class &&
          last.instance == n.instance && last.end == n.index) {
        ++last.end;
        return;
      }
    }
    OrderStep step;
    step.kind = n.kind == NodeKind::port ? OrderStep::Kind::fill_port : OrderStep::Kind::sweep;
    step.rank_class = n.rank_class;
    step.instance = n.instance;
    step.first = n.index;
    step.end = n.index + 1;
    order_.steps.push_back(step);
  }

  // Error with a cycle. Every remaining node waits for another remaining node, so following `waits_for` must
  // reach a cycle.
  Status circle() const {
    std::vector<std::uint32_t> waits_for(nodes_.size(), kNoTask);
    for (const Wait& w : pairs_)
      if (waits_[w.before] > 0 && waits_[w.node] > 0) waits_for[w.node] = w.before;
    std::vector<bool> seen(nodes_.size(), false);
    std::uint32_t node = 0;
    while (waits_[node] == 0) ++node;
    while (!seen[node]) {
      seen[node] = true;
      node = waits_for[node];
    }
    // Start after the end of a collective. From there the walk meets an arrival, then the end it waits for in
    // the same rank.
    for (std::size_t n = 0; n < nodes_.size() && nodes_[node].kind != NodeKind::end; ++n)
      node = waits_for[node];
    std::vector<std::string> sentences;
    std::size_t first = 0;  // the message begins with the lowest class
    std::uint32_t first_class = kNoTask;
    std::uint32_t arrival = kNoTask;
    const std::uint32_t last = node;
    do {
      node = waits_for[node];
      const Node& n = nodes_[node];
      if (n.kind == NodeKind::task && arrival == kNoTask && is_collective(n)) arrival = node;
      if (n.kind == NodeKind::end && arrival != kNoTask) {
        if (n.rank_class < first_class) {
          first_class = n.rank_class;
          first = sentences.size();
        }
        sentences.push_back(fmt::format("{} cannot begin {} before {} is over",
                                        name_of_class(program_, n.rank_class), name_of_task(nodes_[arrival]),
                                        name_of_task(n)));
        arrival = kNoTask;
      }
    } while (node != last);
    std::rotate(sentences.begin(), sentences.begin() + static_cast<std::ptrdiff_t>(first), sentences.end());
    std::string text;
    for (std::size_t s = 0; s < sentences.size() && s < 8; ++s) text += (s > 0 ? "; " : "") + sentences[s];
    if (sentences.size() > 8) text += fmt::format("; and {} more", sentences.size() - 8);
    return Error{"collectives wait for each other in a circle: " + text};
  }

  // `n` must be a node of a task.
  bool is_collective(const Node& n) const {
    const Block& block = program_.block_of(RankClassId{n.rank_class}, InstanceId{n.instance});
    return block.tasks()[n.index].kind == TaskKind::collective;
  }
  std::string name_of_task(const Node& n) const {
    const Block& block = program_.block_of(RankClassId{n.rank_class}, InstanceId{n.instance});
    const std::size_t flat = order_.first_instance[n.rank_class] + n.instance;
    const TaskId task = n.kind == NodeKind::end ? block.collective_tasks()[n.index] : TaskId{n.index};
    const std::size_t position = collective_position(block, task);
    const std::uint32_t k = order_.memberships[order_.first_membership[flat] + position].collective;
    return fmt::format("{} (task {} of instance {})", name_of_collective(program_, k), task.index(),
                       n.instance);
  }

  struct Wait {
    std::uint32_t before, node;
  };
  const Program& program_;
  ExecutionOrder& order_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> first_node_;  // [instance, numbered over all classes]
  std::uint32_t first_joined_ = 0;
  std::vector<Wait> pairs_;
  std::vector<std::uint32_t> waits_;
  std::vector<std::size_t> first_follower_;
  std::vector<std::uint32_t> followers_;
  // [class] -> nodes without open dependencies. Lowest number first, which keeps sweeps long.
  std::vector<std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>> ready_;
  std::size_t done_ = 0;
};

}  // namespace

Status plan_by_tasks(const Program& program, ExecutionOrder& order) {
  return TaskPlanner{program, order}.run();
}

}  // namespace stepcast::detail

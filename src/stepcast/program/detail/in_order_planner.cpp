// plan_in_order(): a cursor per class walks over its instances. A class sleeps when its next task needs the
// end of a collective that is not known yet, and is woken by the `complete` step of that collective.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "stepcast/program/detail/program_check.h"
#include "stepcast/program/detail/task_planner.h"

namespace stepcast::detail {
namespace {

// For each lane, in-port and collective task of a block: the first task that needs it, or task_count() if no
// task does. With it, the next stop of a sweep is found without looking at every task.
struct FirstNeeds {
  explicit FirstNeeds(const Block& block)
      : of_lane(block.lanes().size(), block.task_count()),
        of_in_port(block.in_ports().size(), block.task_count()),
        of_collective(block.collective_tasks().size(), block.task_count()) {
    const std::uint32_t n = block.task_count();
    std::vector<std::uint32_t> open(block.lanes().size(),
                                    kNoTask);  // [lane] -> the collective that ran last on it
    std::size_t next_collective = 0;
    for (std::uint32_t t = 0; t < n; ++t) {
      const std::uint16_t lane = block.lane_codes()[t];
      of_lane[lane] = std::min(of_lane[lane], t);
      if (open[lane] != kNoTask) of_collective[open[lane]] = std::min(of_collective[open[lane]], t);
      open[lane] = kNoTask;
      if (block.tasks()[t].kind == TaskKind::collective)
        open[lane] = static_cast<std::uint32_t>(next_collective++);
      for (std::uint32_t e = block.first_edge()[t]; e < block.first_edge()[t + 1]; ++e) {
        const std::uint32_t source = block.sources()[e];
        if (source >= 2 * n) {
          of_in_port[source - 2 * n] = std::min(of_in_port[source - 2 * n], t);
        } else if (source % 2 == 1 && block.tasks()[source / 2].kind == TaskKind::collective) {
          std::uint32_t& need = of_collective[collective_position(block, TaskId{source / 2})];
          need = std::min(need, t);
        }
      }
    }
  }
  std::vector<std::uint32_t> of_lane, of_in_port, of_collective;
};

class InOrderPlanner {
 public:
  InOrderPlanner(const Program& program, ExecutionOrder& order) : program_(program), order_(order) {
    needs_.reserve(program.blocks().size());
    for (const Block& block : program.blocks()) needs_.emplace_back(block);
    cursors_.resize(program.rank_classes().size());
    arrived_.resize(program.collectives().size());
    std::size_t members = 0;
    for (std::size_t k = 0; k < arrived_.size(); ++k) {
      arrived_[k].first_member = members;
      members += program.collectives()[k].members.size();
    }
    has_arrived_.resize(members);
  }

  // Returns false if some class could not finish, so that all remaining classes wait for each other.
  bool run() {
    for (std::uint32_t c = 0; c < cursors_.size(); ++c) wake(c);
    while (!awake_.empty()) {
      const std::uint32_t c = awake_.front();
      awake_.pop_front();
      cursors_[c].awake = false;
      advance(c);
    }
    for (std::uint32_t c = 0; c < cursors_.size(); ++c)
      if (cursors_[c].instance < program_.rank_classes()[c].instances.size()) return false;
    return true;
  }

 private:
  struct Pending {                     // a collective that this class has joined, with an unknown end
    std::uint32_t instance, position;  // position among the collective tasks of the block
    std::uint32_t task, lane;          // lane of the class
  };
  // An in-port that reads a value which is not known yet.
  struct Unfilled {
    std::uint32_t instance, port;
  };
  // Progress of one class.
  struct Cursor {
    std::uint32_t instance = 0, task = 0;
    std::uint32_t next_collective = 0;  // position among the collective tasks of the block
    bool entered = false, awake = false;
    bool fills_ports = false;
    std::vector<Pending> pending;  // at most one per lane
    std::vector<Unfilled> unfilled;
  };
  // Number of members of a collective that have arrived, and where its flags begin.
  struct Arrived {
    std::size_t count = 0, first_member = 0;  // index into has_arrived_
  };

  void wake(std::uint32_t c) {
    if (cursors_[c].awake) return;
    cursors_[c].awake = true;
    awake_.push_back(c);
  }

  // Whether the value of `source` can be computed from the steps emitted so far.
  bool is_known(std::uint32_t c, const PortSource& source) const {
    if (source.instance == PortSource::kStartOffset) return true;
    const std::uint32_t tasks = program_.block_of(RankClassId{c}, InstanceId{source.instance}).task_count();
    const std::uint32_t code = source.moment.code();
    if (code >= 2 * tasks) {
      return std::none_of(cursors_[c].unfilled.begin(), cursors_[c].unfilled.end(), [&](const Unfilled& u) {
        return u.instance == source.instance && u.port == code - 2 * tasks;
      });
    }
    return code % 2 == 0 ||
           std::none_of(cursors_[c].pending.begin(), cursors_[c].pending.end(), [&](const Pending& p) {
             return p.instance == source.instance && p.task == code / 2;
           });
  }

  const PortSource& source_of(std::uint32_t c, std::uint32_t instance, std::uint32_t port) const {
    return order_.port_sources[order_.first_port[order_.first_instance[c] + instance] + port];
  }

  // First task of the current instance that needs a pending end or an unfilled port; task_count() if none.
  std::uint32_t stop_of(std::uint32_t c) const {
    const Cursor& cursor = cursors_[c];
    const BlockInstance& instance = program_.rank_classes()[c].instances[cursor.instance];
    const FirstNeeds& needs = needs_[instance.block.index()];
    std::uint32_t stop = program_.block(instance.block).task_count();
    for (const Pending& p : cursor.pending) {
      if (p.instance == cursor.instance) {
        stop = std::min(stop, needs.of_collective[p.position]);
        continue;
      }
      for (std::uint32_t lane = 0; lane < needs.of_lane.size(); ++lane)
        if (bound_lane(instance, lane) == p.lane) stop = std::min(stop, needs.of_lane[lane]);
    }
    for (const Unfilled& u : cursor.unfilled)
      if (u.instance == cursor.instance) stop = std::min(stop, needs.of_in_port[u.port]);
    return stop;
  }

  // Starts the current instance. If all in-ports are known, its first sweep fills them; otherwise known ports
  // get their own step and the others are filled by learn_end().
  void enter(std::uint32_t c) {
    Cursor& cursor = cursors_[c];
    const BlockInstance& instance = program_.rank_classes()[c].instances[cursor.instance];
    const Block& block = program_.block(instance.block);
    const auto ports = static_cast<std::uint32_t>(block.in_ports().size());
    unknown_ports_.clear();
    for (std::uint32_t p = 0; p < ports; ++p)
      if (!is_known(c, source_of(c, cursor.instance, p))) unknown_ports_.push_back(p);
    cursor.entered = true;
    cursor.task = 0;
    cursor.next_collective = 0;
    cursor.fills_ports = ports > 0 && unknown_ports_.empty();
    if (!unknown_ports_.empty()) {
      std::size_t unknown = 0;
      for (std::uint32_t p = 0; p < ports; ++p) {
        if (unknown < unknown_ports_.size() && unknown_ports_[unknown] == p) {
          ++unknown;
          cursor.unfilled.push_back({cursor.instance, p});
        } else {
          emit_fill(c, cursor.instance, p);
        }
      }
    }
  }

  void emit_fill(std::uint32_t c, std::uint32_t instance, std::uint32_t port) {
    OrderStep step;
    step.kind = OrderStep::Kind::fill_port;
    step.rank_class = c;
    step.instance = instance;
    step.first = port;
    step.end = port + 1;
    order_.steps.push_back(step);
  }

  // Appends a sweep over tasks [first, end). An empty one is kept only if it must fill in-ports.
  void emit_sweep(std::uint32_t c, std::uint32_t first, std::uint32_t end) {
    Cursor& cursor = cursors_[c];
    if (first == end && !cursor.fills_ports) return;
    OrderStep step;
    step.rank_class = c;
    step.instance = cursor.instance;
    step.first = first;
    step.end = end;
    step.fills_ports = std::exchange(cursor.fills_ports, false);
    order_.steps.push_back(step);
  }

  // Appends the step that computes the end of a member, or of all, and wakes their classes.
  void emit_complete(std::uint32_t collective, std::uint32_t member) {
    OrderStep step;
    step.kind = OrderStep::Kind::complete;
    step.collective = collective;
    step.member = member;
    order_.steps.push_back(step);
    const Collective& joined = program_.collectives()[collective];
    if (member != OrderStep::kAllMembers)
      learn_end(joined.members[member]);
    else
      for (const CollectiveMember& m : joined.members) learn_end(m);
  }

  // The end of this member is known: removes it from the pending ones and fills in-ports that depend on it.
  void learn_end(const CollectiveMember& member) {
    const std::uint32_t c = member.rank_class.index();
    Cursor& cursor = cursors_[c];
    std::erase_if(cursor.pending, [&](const Pending& p) {
      return p.instance == member.instance.index() && p.task == member.task.index();
    });
    for (bool filled = true; filled;) {  // a filled port may be the source of another one
      filled = false;
      for (std::size_t u = 0; u < cursor.unfilled.size(); ++u) {
        const Unfilled port = cursor.unfilled[u];
        if (!is_known(c, source_of(c, port.instance, port.port))) continue;
        emit_fill(c, port.instance, port.port);
        cursor.unfilled.erase(cursor.unfilled.begin() + static_cast<std::ptrdiff_t>(u));
        filled = true;
        break;
      }
    }
    wake(c);
  }

  // Counts the arrival of a member. Completes a collective of kind `all` with its last member. In a rooted
  // collective, a member completes as soon as both it and the root have arrived.
  void arrive(std::uint32_t collective, std::uint32_t member) {
    const Collective& joined = program_.collectives()[collective];
    Arrived& arrived = arrived_[collective];
    ++arrived.count;
    if (joined.kind == CollectiveKind::rooted_from) {
      has_arrived_[arrived.first_member + member] = true;
      if (member == joined.root) {
        for (std::uint32_t m = 0; m < joined.members.size(); ++m)
          if (m != member && has_arrived_[arrived.first_member + m]) emit_complete(collective, m);
      } else if (has_arrived_[arrived.first_member + joined.root]) {
        emit_complete(collective, member);
      }
    } else if (arrived.count == joined.members.size()) {
      emit_complete(collective, OrderStep::kAllMembers);
    }
  }

  // Runs a class until its end or until its next task needs an unknown end. Collectives inside the sweep are
  // joined first, since their pending ends may shorten the sweep.
  void advance(std::uint32_t c) {
    Cursor& cursor = cursors_[c];
    const auto& instances = program_.rank_classes()[c].instances;
    while (cursor.instance < instances.size()) {
      if (!cursor.entered) enter(c);
      const BlockInstance& instance = instances[cursor.instance];
      const Block& block = program_.block(instance.block);
      const FirstNeeds& needs = needs_[instance.block.index()];
      const std::span<const TaskId> tasks = block.collective_tasks();
      const std::size_t memberships = order_.first_membership[order_.first_instance[c] + cursor.instance];

      const std::uint32_t first_collective = cursor.next_collective;
      std::uint32_t stop = stop_of(c);
      while (cursor.next_collective < tasks.size() && tasks[cursor.next_collective].index() < stop) {
        const std::uint32_t position = cursor.next_collective++;
        const CollectiveMembership m = order_.memberships[memberships + position];
        if (!waits_for_others(program_.collectives()[m.collective], m.member)) continue;
        stop = std::min(stop, needs.of_collective[position]);
        const std::uint32_t task = tasks[position].index();
        cursor.pending.push_back(
            {cursor.instance, position, task, bound_lane(instance, block.lane_codes()[task])});
      }
      if (stop == cursor.task && stop < block.task_count()) return;
      emit_sweep(c, cursor.task, stop);
      cursor.task = stop;
      for (std::uint32_t position = first_collective; position < cursor.next_collective; ++position) {
        const CollectiveMembership m = order_.memberships[memberships + position];
        arrive(m.collective, m.member);
      }
      if (stop == block.task_count()) {
        ++cursor.instance;
        cursor.entered = false;
      }
    }
  }

  const Program& program_;
  ExecutionOrder& order_;
  std::vector<FirstNeeds> needs_;  // [block]
  std::vector<Cursor> cursors_;    // [class]
  std::vector<Arrived> arrived_;   // [collective]
  std::vector<bool> has_arrived_;  // [member], the collectives one after the other
  std::deque<std::uint32_t> awake_;
  std::vector<std::uint32_t> unknown_ports_;
};

}  // namespace

bool plan_in_order(const Program& program, ExecutionOrder& order) {
  return InOrderPlanner{program, order}.run();
}

}  // namespace stepcast::detail

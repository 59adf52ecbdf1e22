#include "stepcast/program/execution_order.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace stepcast {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

// ---------------------------------------------------------------------------------------------------------
// Names for messages.

std::string name_of_class(const Program& program, std::uint32_t c) {
  const std::string& name = program.rank_classes()[c].name;
  return name.empty() ? fmt::format("rank class {}", c) : fmt::format("rank class \"{}\"", name);
}

std::string name_of_instance(const Program& program, std::uint32_t c, std::uint32_t i) {
  const BlockId block = program.rank_classes()[c].instances[i].block;
  std::string text = fmt::format("{}, instance {}", name_of_class(program, c), i);
  if (block.index() < program.blocks().size())
    text += fmt::format(" (block \"{}\")", program.block(block).name());
  return text;
}

std::string name_of_collective(const Program& program, std::uint32_t k) {
  const std::string_view name = program.names.text(program.collectives()[k].name);
  return name.empty() ? fmt::format("collective {}", k) : fmt::format("collective {} (\"{}\")", k, name);
}

std::string name_of_member(const Program& program, std::uint32_t k, std::uint32_t m) {
  const CollectiveMember& member = program.collectives()[k].members[m];
  return fmt::format("{}, member {} (task {} of instance {} of {})", name_of_collective(program, k), m,
                     member.task.index(), member.instance.index(),
                     name_of_class(program, member.rank_class.index()));
}

// ---------------------------------------------------------------------------------------------------------
// Invariants that hold for one instance or one collective, and the links between them.

Status check_binding(const Program& program, std::uint32_t c, std::uint32_t i) {
  const RankClass& rank_class = program.rank_classes()[c];
  const BlockInstance& instance = rank_class.instances[i];
  // Names are put together where something is wrong: most instances are right.
  const auto place = [&] { return name_of_instance(program, c, i); };
  if (instance.block.index() >= program.blocks().size()) {
    return Error::at("", place(), "unknown block")
        .found(fmt::format("block {}", instance.block.index()))
        .expected(fmt::format("one of {}", program.blocks().size()));
  }
  const Block& block = program.block(instance.block);
  if (instance.repeat == 0) return Error::at("", place(), "invalid repeat").found("0").expected("1 or more");
  if (instance.repeat > 1 && !block.collective_tasks().empty()) {
    return Error::at("", place(), "repeats a block with collectives")
        .found(fmt::format("repeat {} and {} collective tasks", instance.repeat,
                           block.collective_tasks().size()))
        .advice("add one instance per repetition and join the collectives of each");
  }

  if (!instance.lanes.empty() && instance.lanes.size() != block.lanes().size()) {
    return Error::at("", place(), "a lane is not bound")
        .found(fmt::format("{} bound lanes", instance.lanes.size()))
        .expected(fmt::format("{}, one for each lane of the block", block.lanes().size()));
  }
  std::vector<std::uint32_t> bound_by(rank_class.lanes.size(), kNone);
  for (std::uint32_t lane = 0; lane < block.lanes().size(); ++lane) {
    const std::uint32_t bound = instance.lanes.empty() ? lane : instance.lanes[lane];
    if (bound >= rank_class.lanes.size()) {
      return Error::at("", place(),
                       fmt::format("lane \"{}\" is bound to an unknown lane", block.lanes()[lane].name))
          .found(fmt::format("lane {}", bound))
          .expected(fmt::format("one of the {} lanes of the class", rank_class.lanes.size()));
    }
    if (bound_by[bound] != kNone) {
      return Error::at("", place(),
                       fmt::format("lanes \"{}\" and \"{}\" are bound to the same lane",
                                   block.lanes()[bound_by[bound]].name, block.lanes()[lane].name))
          .found(fmt::format("lane {} of the class twice", bound));
    }
    bound_by[bound] = lane;
    if (block.lanes()[lane].kind != rank_class.lanes[bound].kind) {
      const auto kind = [](LaneKind k) {
        return k == LaneKind::cpu_thread ? "a CPU thread" : "a GPU stream";
      };
      return Error::at(
                 "", place(),
                 fmt::format("lane \"{}\" is bound to a lane of another kind", block.lanes()[lane].name))
          .found(kind(rank_class.lanes[bound].kind))
          .expected(kind(block.lanes()[lane].kind));
    }
  }

  const auto check_slots = [&](const std::vector<std::uint16_t>& slots, std::size_t ports,
                               std::string_view direction) -> Status {
    if (slots.size() != ports) {
      return Error::at("", place(), fmt::format("an {}-port is not bound", direction))
          .found(fmt::format("{} bound {}-ports", slots.size(), direction))
          .expected(fmt::format("{}, one for each {}-port of the block", ports, direction));
    }
    for (std::size_t p = 0; p < ports; ++p) {
      if (slots[p] >= rank_class.slot_count) {
        return Error::at("", place(), fmt::format("{}-port {} is bound to an unknown slot", direction, p))
            .found(fmt::format("slot {}", slots[p]))
            .expected(fmt::format("one of the {} slots of the class", rank_class.slot_count));
      }
    }
    return Ok{};
  };
  STEPCAST_TRY(check_slots(instance.in_slots, block.in_ports().size(), "in"));
  STEPCAST_TRY(check_slots(instance.out_slots, block.out_ports().size(), "out"));
  std::vector<std::uint16_t> written = instance.out_slots;
  std::sort(written.begin(), written.end());
  if (const auto twice = std::adjacent_find(written.begin(), written.end()); twice != written.end()) {
    return Error::at("", place(), "two out-ports write the same slot")
        .found(fmt::format("slot {} twice", *twice));
  }
  return Ok{};
}

Status check_collective(const Program& program, std::uint32_t k) {
  const Collective& collective = program.collectives()[k];
  const auto place = [&] { return name_of_collective(program, k); };
  const bool rooted =
      collective.kind == CollectiveKind::rooted_from || collective.kind == CollectiveKind::rooted_to;
  if (collective.members.empty()) return Error::at("", place(), "has no members");
  if (collective.kind == CollectiveKind::pair && collective.members.size() != 2) {
    return Error::at("", place(), "a pair of other than two members")
        .found(fmt::format("{} members", collective.members.size()));
  }
  if (rooted && collective.root >= collective.members.size()) {
    return Error::at("", place(), "root out of range")
        .found(fmt::format("root {}", collective.root))
        .expected(fmt::format("the position of one of {} members", collective.members.size()));
  }
  for (std::uint32_t m = 0; m < collective.members.size(); ++m) {
    const CollectiveMember& member = collective.members[m];
    const auto member_place = [&] { return fmt::format("{}, member {}", place(), m); };
    if (member.rank_class.index() >= program.rank_classes().size()) {
      return Error::at("", member_place(), "unknown rank class")
          .found(fmt::format("rank class {}", member.rank_class.index()))
          .expected(fmt::format("one of {}", program.rank_classes().size()));
    }
    const RankClass& rank_class = program.rank_class(member.rank_class);
    if (member.instance.index() >= rank_class.instances.size()) {
      return Error::at("", member_place(), "unknown instance")
          .found(fmt::format("instance {}", member.instance.index()))
          .expected(fmt::format("one of {} of {}", rank_class.instances.size(),
                                name_of_class(program, member.rank_class.index())));
    }
    const Block& block = program.block_of(member.rank_class, member.instance);
    if (member.task.index() >= block.task_count()) {
      return Error::at("", member_place(), "unknown task")
          .found(fmt::format("task {}", member.task.index()))
          .expected(fmt::format("one of {} of block \"{}\"", block.task_count(), block.name()));
    }
    if (block.task(member.task).kind != TaskKind::collective) {
      return Error::at("", name_of_member(program, k, m), "is not a collective task")
          .found(fmt::format("a {}", to_string(block.task(member.task).kind)));
    }
    const RankClass& first = program.rank_class(collective.members.front().rank_class);
    if (collective.grouping == CollectiveGrouping::aligned && rank_class.multiplicity != first.multiplicity) {
      return Error::at("", place(), "an aligned group of classes with unequal multiplicities")
          .found(fmt::format("{} of {} and {} of {}", first.multiplicity,
                             name_of_class(program, collective.members.front().rank_class.index()),
                             rank_class.multiplicity, name_of_class(program, member.rank_class.index())));
    }
  }
  return Ok{};
}

// Position of a task among the collective tasks of its block.
std::size_t collective_position(const Block& block, TaskId task) {
  const auto tasks = block.collective_tasks();
  return static_cast<std::size_t>(std::lower_bound(tasks.begin(), tasks.end(), task) - tasks.begin());
}

Status link_collectives(const Program& program, ExecutionOrder& order) {
  order.memberships.assign(order.first_membership.back(), {kNone, kNone});
  for (std::uint32_t k = 0; k < program.collectives().size(); ++k) {
    STEPCAST_TRY(check_collective(program, k));
    const Collective& collective = program.collectives()[k];
    for (std::uint32_t m = 0; m < collective.members.size(); ++m) {
      const CollectiveMember& member = collective.members[m];
      const Block& block = program.block_of(member.rank_class, member.instance);
      const std::size_t instance = order.first_instance[member.rank_class.index()] + member.instance.index();
      CollectiveMembership& membership =
          order.memberships[order.first_membership[instance] + collective_position(block, member.task)];
      if (membership.collective == k) {
        return Error::at("", name_of_member(program, k, m), "a repeated member")
            .found(fmt::format("the same task as member {}", membership.member));
      }
      if (membership.collective != kNone) {
        return Error::at("", name_of_member(program, k, m), "belongs to two collectives")
            .found(fmt::format("the task in {} as well", name_of_collective(program, membership.collective)));
      }
      membership = {k, m};
    }
  }
  std::size_t instance = 0;
  for (std::uint32_t c = 0; c < program.rank_classes().size(); ++c) {
    for (std::uint32_t i = 0; i < program.rank_classes()[c].instances.size(); ++i, ++instance) {
      const Block& block = program.block_of(RankClassId{c}, InstanceId{i});
      for (std::size_t n = 0; n < block.collective_tasks().size(); ++n) {
        if (order.memberships[order.first_membership[instance] + n].collective == kNone) {
          return Error::at("", name_of_instance(program, c, i),
                           fmt::format("collective task {} belongs to no collective",
                                       block.collective_tasks()[n].index()));
        }
      }
    }
  }
  return Ok{};
}

// Checks and numbers instances, and finds for every in-port who wrote its slot.
Result<ExecutionOrder> link(const Program& program) {
  ExecutionOrder order;
  order.first_instance.push_back(0);
  order.first_port.push_back(0);
  order.first_membership.push_back(0);
  std::vector<PortSource> writer;  // [slot] -> as an in-port would see it
  for (std::uint32_t c = 0; c < program.rank_classes().size(); ++c) {
    const RankClass& rank_class = program.rank_classes()[c];
    if (rank_class.multiplicity == 0) {
      return Error::at("", name_of_class(program, c), "has no ranks")
          .found("multiplicity 0")
          .expected("1 or more");
    }
    writer.assign(rank_class.slot_count, PortSource{});
    for (std::uint32_t i = 0; i < rank_class.instances.size(); ++i) {
      STEPCAST_TRY(check_binding(program, c, i));
      const BlockInstance& instance = rank_class.instances[i];
      const Block& block = program.block(instance.block);
      for (const std::uint16_t slot : instance.in_slots) {
        PortSource source = writer[slot];
        if (instance.repeat > 1) {
          const auto own = std::find(instance.out_slots.begin(), instance.out_slots.end(), slot);
          if (own != instance.out_slots.end()) {
            const OutPort& port =
                block.out_ports()[static_cast<std::size_t>(own - instance.out_slots.begin())];
            source.from_previous_repetition = true;
            source.previous_moment = port.source;
            source.previous_delay_us = port.delay.value();
          }
        }
        order.port_sources.push_back(source);
      }
      for (std::size_t p = 0; p < instance.out_slots.size(); ++p) {
        PortSource& source = writer[instance.out_slots[p]];
        source = PortSource{};
        source.instance = i;
        source.moment = block.out_ports()[p].source;
        source.delay_us = block.out_ports()[p].delay.value();
      }
      order.first_port.push_back(order.port_sources.size());
      order.first_membership.push_back(order.first_membership.back() + block.collective_tasks().size());
    }
    order.first_instance.push_back(static_cast<std::uint32_t>(order.first_port.size() - 1));
  }
  STEPCAST_TRY(link_collectives(program, order));
  return order;
}

std::uint32_t bound_lane(const BlockInstance& instance, std::uint32_t block_lane) {
  return instance.lanes.empty() ? block_lane : instance.lanes[block_lane];
}

// ---------------------------------------------------------------------------------------------------------
// The usual way: every class runs its instances in order and its tasks in block order, and stops where it
// needs the end of a collective that others have not joined yet. Takes time per step, not per task.

// Where the tasks of a block first need something; task_count() where they do not.
struct FirstNeeds {
  explicit FirstNeeds(const Block& block)
      : of_lane(block.lanes().size(), block.task_count()),
        of_in_port(block.in_ports().size(), block.task_count()),
        of_collective(block.collective_tasks().size(), block.task_count()) {
    const std::uint32_t n = block.task_count();
    std::vector<std::uint32_t> open(block.lanes().size(),
                                    kNone);  // [lane] -> the collective that ran on it last
    std::size_t next_collective = 0;
    for (std::uint32_t t = 0; t < n; ++t) {
      const std::uint16_t lane = block.lane_codes()[t];
      of_lane[lane] = std::min(of_lane[lane], t);
      if (open[lane] != kNone) of_collective[open[lane]] = std::min(of_collective[open[lane]], t);
      open[lane] = kNone;
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
    for (std::size_t k = 0; k < arrived_.size(); ++k) {
      if (program.collectives()[k].kind == CollectiveKind::rooted_from) {
        arrived_[k].members.assign(program.collectives()[k].members.size(), false);
      }
    }
  }

  // False if every class waits for another one.
  bool run() {
    for (std::uint32_t c = 0; c < cursors_.size(); ++c) wake(c);
    while (!awake_.empty()) {
      const std::uint32_t c = awake_.front();
      awake_.pop_front();
      cursors_[c].awake = false;
      advance(c);
    }
    for (std::uint32_t c = 0; c < cursors_.size(); ++c) {
      if (cursors_[c].instance < program_.rank_classes()[c].instances.size()) return false;
    }
    return true;
  }

 private:
  struct Pending {  // a collective that this class has joined and whose end is not known yet
    std::uint32_t instance, position;  // position among the block's collective tasks
    std::uint32_t task, lane;          // lane of the class
  };
  struct Unfilled {
    std::uint32_t instance, port;
  };
  struct Cursor {
    std::uint32_t instance = 0, task = 0;
    std::uint32_t next_collective = 0;  // position among the block's collective tasks
    bool entered = false, awake = false;
    bool fills_ports = false;
    std::vector<Pending> pending;  // at most one per lane
    std::vector<Unfilled> unfilled;
  };
  struct Arrived {
    std::size_t count = 0;
    std::vector<bool> members;  // rooted_from only
  };

  void wake(std::uint32_t c) {
    if (cursors_[c].awake) return;
    cursors_[c].awake = true;
    awake_.push_back(c);
  }

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

  // First task of the present instance that needs a pending end or an unfilled port.
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
      for (std::uint32_t lane = 0; lane < needs.of_lane.size(); ++lane) {
        if (bound_lane(instance, lane) == p.lane) stop = std::min(stop, needs.of_lane[lane]);
      }
    }
    for (const Unfilled& u : cursor.unfilled) {
      if (u.instance == cursor.instance) stop = std::min(stop, needs.of_in_port[u.port]);
    }
    return stop;
  }

  // False if the instance, a repeated run, has to wait as a whole.
  bool enter(std::uint32_t c) {
    Cursor& cursor = cursors_[c];
    const BlockInstance& instance = program_.rank_classes()[c].instances[cursor.instance];
    const Block& block = program_.block(instance.block);
    const auto ports = static_cast<std::uint32_t>(block.in_ports().size());
    unknown_ports_.clear();
    for (std::uint32_t p = 0; p < ports; ++p) {
      if (!is_known(c, source_of(c, cursor.instance, p))) unknown_ports_.push_back(p);
    }
    if (instance.repeat > 1 && (!unknown_ports_.empty() || stop_of(c) < block.task_count())) return false;
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
    return true;
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

  void emit_sweep(std::uint32_t c, std::uint32_t first, std::uint32_t end) {
    Cursor& cursor = cursors_[c];
    if (first == end && !cursor.fills_ports) return;
    OrderStep step;
    step.rank_class = c;
    step.instance = cursor.instance;
    step.first = first;
    step.end = end;
    step.fills_ports = std::exchange(cursor.fills_ports, false);
    step.repetition_end = program_.rank_classes()[c].instances[cursor.instance].repeat;
    order_.steps.push_back(step);
  }

  void emit_complete(std::uint32_t collective, std::uint32_t member) {
    OrderStep step;
    step.kind = OrderStep::Kind::complete;
    step.collective = collective;
    step.member = member;
    order_.steps.push_back(step);
    const Collective& joined = program_.collectives()[collective];
    if (member != OrderStep::kAllMembers) {
      learn_end(joined.members[member]);
    } else {
      for (const CollectiveMember& m : joined.members) learn_end(m);
    }
  }

  void learn_end(const CollectiveMember& member) {
    const std::uint32_t c = member.rank_class.index();
    Cursor& cursor = cursors_[c];
    std::erase_if(cursor.pending, [&](const Pending& p) {
      return p.instance == member.instance.index() && p.task == member.task.index();
    });
    for (bool filled = true; filled;) {  // a port that was filled may feed another one
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

  void arrive(std::uint32_t collective, std::uint32_t member) {
    const Collective& joined = program_.collectives()[collective];
    Arrived& arrived = arrived_[collective];
    ++arrived.count;
    if (joined.kind == CollectiveKind::rooted_from) {
      arrived.members[member] = true;
      if (member == joined.root) {
        for (std::uint32_t m = 0; m < joined.members.size(); ++m) {
          if (m != member && arrived.members[m]) emit_complete(collective, m);
        }
      } else if (arrived.members[joined.root]) {
        emit_complete(collective, member);
      }
    } else if (arrived.count == joined.members.size()) {
      emit_complete(collective,
                    joined.kind == CollectiveKind::rooted_to ? joined.root : OrderStep::kAllMembers);
    }
  }

  void advance(std::uint32_t c) {
    Cursor& cursor = cursors_[c];
    const auto& instances = program_.rank_classes()[c].instances;
    while (cursor.instance < instances.size()) {
      if (!cursor.entered && !enter(c)) return;
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
  std::deque<std::uint32_t> awake_;
  std::vector<std::uint32_t> unknown_ports_;
};

// ---------------------------------------------------------------------------------------------------------
// When that gets stuck: Kahn's algorithm over every task of every class. It finds an order wherever there is
// one (a task may overtake an earlier one of its block that waits for others), and where there is none, the
// circle.

class TaskPlanner {
 public:
  TaskPlanner(const Program& program, ExecutionOrder& order) : program_(program), order_(order) {
    number_nodes();
    add_waits();
  }

  Status run() {
    sort_waits();
    ready_.resize(program_.rank_classes().size());
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      if (waits_[node] == 0) make_ready(node);
    }
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
  enum class NodeKind : std::uint8_t { run, port, task, end, joined };
  struct Node {
    NodeKind kind;
    std::uint32_t rank_class;  // joined: the collective
    std::uint32_t instance;
    std::uint32_t index;  // port: in-port; task: task; end: position among the block's collective tasks
  };

  // Nodes of an instance: its in-ports, its tasks, the ends of its collective tasks; a repeated run is one
  // node.
  void number_nodes() {
    for (std::uint32_t c = 0; c < program_.rank_classes().size(); ++c) {
      const auto& instances = program_.rank_classes()[c].instances;
      for (std::uint32_t i = 0; i < instances.size(); ++i) {
        first_node_.push_back(static_cast<std::uint32_t>(nodes_.size()));
        const Block& block = program_.block(instances[i].block);
        if (instances[i].repeat > 1) {
          nodes_.push_back({NodeKind::run, c, i, 0});
          continue;
        }
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
    if (instance.repeat > 1) return first;
    return first + static_cast<std::uint32_t>(program_.block(instance.block).in_ports().size()) + task;
  }
  std::uint32_t node_of_end(std::uint32_t c, std::uint32_t i, std::uint32_t task) const {
    const Block& block = program_.block_of(RankClassId{c}, InstanceId{i});
    if (block.tasks()[task].kind != TaskKind::collective) return node_of_task(c, i, task);
    return node_of_task(c, i, block.task_count()) +
           static_cast<std::uint32_t>(collective_position(block, TaskId{task}));
  }
  std::uint32_t node_of_moment(std::uint32_t c, std::uint32_t i, Moment moment) const {
    const BlockInstance& instance = program_.rank_classes()[c].instances[i];
    const std::uint32_t first = first_node_[order_.first_instance[c] + i];
    if (instance.repeat > 1) return first;
    const std::uint32_t tasks = program_.block(instance.block).task_count();
    if (moment.code() >= 2 * tasks) return first + (moment.code() - 2 * tasks);
    const std::uint32_t task = moment.code() / 2;
    return moment.code() % 2 == 0 ? node_of_task(c, i, task) : node_of_end(c, i, task);
  }

  void add_wait(std::uint32_t node, std::uint32_t before) { pairs_.push_back({before, node}); }

  void add_waits() {
    for (std::uint32_t c = 0; c < program_.rank_classes().size(); ++c) {
      const RankClass& rank_class = program_.rank_classes()[c];
      std::vector<std::uint32_t> lane_free(rank_class.lanes.size(), kNone);
      for (std::uint32_t i = 0; i < rank_class.instances.size(); ++i) add_waits_of(c, i, lane_free);
    }
    for (std::uint32_t k = 0; k < program_.collectives().size(); ++k) add_waits_of_collective(k);
  }

  void add_waits_of(std::uint32_t c, std::uint32_t i, std::vector<std::uint32_t>& lane_free) {
    const BlockInstance& instance = program_.rank_classes()[c].instances[i];
    const Block& block = program_.block(instance.block);
    const std::size_t flat = order_.first_instance[c] + i;
    const bool whole = instance.repeat > 1;
    for (std::uint32_t p = 0; p < block.in_ports().size(); ++p) {
      const PortSource& source = order_.port_sources[order_.first_port[flat] + p];
      if (source.instance == PortSource::kStartOffset) continue;
      add_wait(first_node_[flat] + (whole ? 0 : p), node_of_moment(c, source.instance, source.moment));
    }
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      const std::uint32_t node = node_of_task(c, i, t);
      std::uint32_t& free = lane_free[bound_lane(instance, block.lane_codes()[t])];
      if (free != kNone && free != node) add_wait(node, free);
      free = node_of_end(c, i, t);
      if (whole) continue;
      for (std::uint32_t e = block.first_edge()[t]; e < block.first_edge()[t + 1]; ++e) {
        add_wait(node, node_of_moment(c, i, Moment{block.sources()[e]}));
      }
    }
  }

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

  void make_ready(std::uint32_t node) {
    if (nodes_[node].kind != NodeKind::joined) {
      ready_[nodes_[node].rank_class].push(node);
      return;
    }
    const std::uint32_t k = nodes_[node].rank_class;
    const Collective& collective = program_.collectives()[k];
    if (collective.kind == CollectiveKind::all || collective.kind == CollectiveKind::pair) {
      emit_complete(k, OrderStep::kAllMembers);
    }
    release_followers(node);
  }

  void release_followers(std::uint32_t node) {
    ++done_;
    for (std::size_t f = first_follower_[node]; f < first_follower_[node + 1]; ++f) {
      if (--waits_[followers_[f]] == 0) make_ready(followers_[f]);
    }
  }

  void emit_complete(std::uint32_t collective, std::uint32_t member) {
    OrderStep step;
    step.kind = OrderStep::Kind::complete;
    step.collective = collective;
    step.member = member;
    order_.steps.push_back(step);
  }

  void emit(std::uint32_t node) {
    const Node& n = nodes_[node];
    if (n.kind == NodeKind::end) {
      const std::size_t flat = order_.first_instance[n.rank_class] + n.instance;
      const CollectiveMembership m = order_.memberships[order_.first_membership[flat] + n.index];
      const Collective& collective = program_.collectives()[m.collective];
      const bool rooted =
          collective.kind == CollectiveKind::rooted_from || collective.kind == CollectiveKind::rooted_to;
      if (rooted && waits_for_others(collective, m.member)) emit_complete(m.collective, m.member);
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
    if (n.kind == NodeKind::run) {
      const BlockInstance& instance = program_.rank_classes()[n.rank_class].instances[n.instance];
      step.fills_ports = !program_.block(instance.block).in_ports().empty();
      step.end = program_.block(instance.block).task_count();
      step.repetition_end = instance.repeat;
    }
    order_.steps.push_back(step);
  }

  // What is left waits for something that is left: walking back must come round.
  Status circle() const {
    std::vector<std::uint32_t> waits_for(nodes_.size(), kNone);
    for (const Wait& w : pairs_) {
      if (waits_[w.before] > 0 && waits_[w.node] > 0) waits_for[w.node] = w.before;
    }
    std::vector<bool> seen(nodes_.size(), false);
    std::uint32_t node = 0;
    while (waits_[node] == 0) ++node;
    while (!seen[node]) {
      seen[node] = true;
      node = waits_for[node];
    }
    // Begin behind the end of a collective: from there the walk meets an arrival and, in the same rank, the
    // end it waits for.
    for (std::size_t n = 0; n < nodes_.size() && nodes_[node].kind != NodeKind::end; ++n)
      node = waits_for[node];
    std::vector<std::string> sentences;
    std::size_t first = 0;  // told from the lowest class on
    std::uint32_t first_class = kNone;
    std::uint32_t arrival = kNone;
    const std::uint32_t last = node;
    do {
      node = waits_for[node];
      const Node& n = nodes_[node];
      if (n.kind == NodeKind::task && arrival == kNone && is_collective(n)) arrival = node;
      if (n.kind == NodeKind::end && arrival != kNone) {
        if (n.rank_class < first_class) {
          first_class = n.rank_class;
          first = sentences.size();
        }
        sentences.push_back(fmt::format("{} cannot begin {} before {} is over",
                                        name_of_class(program_, n.rank_class), name_of_task(nodes_[arrival]),
                                        name_of_task(n)));
        arrival = kNone;
      }
    } while (node != last);
    std::rotate(sentences.begin(), sentences.begin() + static_cast<std::ptrdiff_t>(first), sentences.end());
    std::string text;
    for (std::size_t s = 0; s < sentences.size() && s < 8; ++s) text += (s > 0 ? "; " : "") + sentences[s];
    if (sentences.size() > 8) text += fmt::format("; and {} more", sentences.size() - 8);
    return Error{"collectives wait for each other in a circle: " + text};
  }

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
  std::vector<std::uint32_t> first_node_;  // [instance, numbered through]
  std::uint32_t first_joined_ = 0;
  std::vector<Wait> pairs_;
  std::vector<std::uint32_t> waits_;
  std::vector<std::size_t> first_follower_;
  std::vector<std::uint32_t> followers_;
  // [class] -> nodes that wait for nothing more, lowest number first, so that stretches stay long.
  std::vector<std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>> ready_;
  std::size_t done_ = 0;
};

}  // namespace

Result<ExecutionOrder> order_execution(const Program& program) {
  STEPCAST_ASSIGN(ExecutionOrder order, link(program));
  if (InOrderPlanner{program, order}.run()) return order;
  order.steps.clear();
  STEPCAST_TRY((TaskPlanner{program, order}.run()));
  return order;
}

}  // namespace stepcast

#include "stepcast/program/detail/program_check.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace stepcast::detail {

namespace {

// The checks of one instance or one collective, and the links between them.

// Scratch memory of check_binding(), reused for every instance.
struct Bound {
  std::vector<std::uint32_t> by;       // [lane of the class]
  std::vector<std::uint16_t> written;  // slots written by the instance
};

// Checks that instance i of class c has a known block, and that all its lanes and ports are bound to
// existing, distinct lanes and slots.
Status check_binding(const Program& program, std::uint32_t c, std::uint32_t i, Bound& seen) {
  const RankClass& rank_class = program.rank_classes()[c];
  const BlockInstance& instance = rank_class.instances[i];
  // The text is built only for errors, since most instances are valid.
  const auto place = [&] { return name_of_instance(program, c, i); };
  if (instance.block.index() >= program.blocks().size()) {
    return Error::at("", place(), "unknown block")
        .found(fmt::format("block {}", instance.block.index()))
        .expected(fmt::format("one of {}", program.blocks().size()));
  }
  const Block& block = program.block(instance.block);
  if (!instance.lanes.empty() && instance.lanes.size() != block.lanes().size()) {
    return Error::at("", place(), "a lane is not bound")
        .found(fmt::format("{} bound lanes", instance.lanes.size()))
        .expected(fmt::format("{}, one for each lane of the block", block.lanes().size()));
  }
  std::vector<std::uint32_t>& bound_by = seen.by;
  bound_by.assign(rank_class.lanes.size(), kNoTask);
  for (std::uint32_t lane = 0; lane < block.lanes().size(); ++lane) {
    const std::uint32_t bound = instance.lanes.empty() ? lane : instance.lanes[lane];
    if (bound >= rank_class.lanes.size()) {
      return Error::at("", place(),
                       fmt::format("lane \"{}\" is bound to an unknown lane", block.lanes()[lane].name))
          .found(fmt::format("lane {}", bound))
          .expected(fmt::format("one of the {} lanes of the class", rank_class.lanes.size()));
    }
    if (bound_by[bound] != kNoTask) {
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
  std::vector<std::uint16_t>& written = seen.written;
  written.assign(instance.out_slots.begin(), instance.out_slots.end());
  std::sort(written.begin(), written.end());
  if (const auto twice = std::adjacent_find(written.begin(), written.end()); twice != written.end()) {
    return Error::at("", place(), "two out-ports write the same slot")
        .found(fmt::format("slot {} twice", *twice));
  }
  return Ok{};
}

// Checks the members, the root and the multiplicities of collective k.
Status check_collective(const Program& program, std::uint32_t k) {
  const Collective& collective = program.collectives()[k];
  const auto place = [&] { return name_of_collective(program, k); };
  if (collective.members.empty()) return Error::at("", place(), "has no members");
  if (collective.kind == CollectiveKind::rooted_from && collective.root >= collective.members.size()) {
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

// Fills order.memberships. Errors: an invalid collective, and a collective task that belongs to none or to
// two.
Status link_collectives(const Program& program, ExecutionOrder& order) {
  order.memberships.assign(order.first_membership.back(), {kNoTask, kNoTask});
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
      if (membership.collective != kNoTask) {
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
        if (order.memberships[order.first_membership[instance] + n].collective == kNoTask) {
          return Error::at("", name_of_instance(program, c, i),
                           fmt::format("collective task {} belongs to no collective",
                                       block.collective_tasks()[n].index()));
        }
      }
    }
  }
  return Ok{};
}

}  // namespace

std::size_t collective_position(const Block& block, TaskId task) {
  const auto tasks = block.collective_tasks();
  return static_cast<std::size_t>(std::lower_bound(tasks.begin(), tasks.end(), task) - tasks.begin());
}

Result<ExecutionOrder> check_and_link(const Program& program) {
  ExecutionOrder order;
  order.first_instance.push_back(0);
  order.first_port.push_back(0);
  order.first_membership.push_back(0);
  std::vector<PortSource> writer;  // [slot] -> its last writer so far
  Bound seen;
  std::size_t instances = 0;
  for (const RankClass& rank_class : program.rank_classes()) instances += rank_class.instances.size();
  order.first_port.reserve(instances + 1);
  order.first_membership.reserve(instances + 1);
  for (std::uint32_t c = 0; c < program.rank_classes().size(); ++c) {
    const RankClass& rank_class = program.rank_classes()[c];
    if (rank_class.multiplicity == 0) {
      return Error::at("", name_of_class(program, c), "has no ranks")
          .found("multiplicity 0")
          .expected("1 or more");
    }
    writer.assign(rank_class.slot_count, PortSource{});
    for (std::uint32_t i = 0; i < rank_class.instances.size(); ++i) {
      STEPCAST_TRY(check_binding(program, c, i, seen));
      const BlockInstance& instance = rank_class.instances[i];
      const Block& block = program.block(instance.block);
      for (const std::uint16_t slot : instance.in_slots) order.port_sources.push_back(writer[slot]);
      for (std::size_t p = 0; p < instance.out_slots.size(); ++p) {
        PortSource& source = writer[instance.out_slots[p]];
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

}  // namespace stepcast::detail

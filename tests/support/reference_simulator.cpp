#include "tests/support/reference_simulator.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace stepcast::fixtures {
namespace {

struct Wait {
  std::size_t variable;
  double delay;
};
// variable = max over waits (their value + delay) + duration
struct Equation {
  std::size_t variable;
  std::vector<Wait> waits;
  double duration = 0;
};

class Equations {
 public:
  std::size_t new_variable() {
    values.push_back(-std::numeric_limits<double>::infinity());
    return values.size() - 1;
  }
  bool settle() {
    // Without a circle each round settles at least one more equation.
    for (std::size_t round = 0; round < equations.size() + 2; ++round) {
      bool changed = false;
      for (auto e = equations.rbegin(); e != equations.rend(); ++e) {
        double value = -std::numeric_limits<double>::infinity();
        for (const Wait& w : e->waits) value = std::max(value, values[w.variable] + w.delay);
        value += e->duration;
        changed = changed || value != values[e->variable];
        values[e->variable] = value;
      }
      if (!changed) return true;
    }
    return false;
  }
  std::vector<double> values;
  std::vector<Equation> equations;
};

struct TaskVariables {
  std::size_t start, end;
};

}  // namespace

std::optional<ReferenceTimes> reference_simulate(const Program& program, const Costs& costs,
                                                 const std::vector<double>& start_offset_us) {
  Equations system;
  std::map<TaskRef, TaskVariables> tasks;
  std::vector<std::vector<std::vector<std::size_t>>> lane_free;

  std::size_t rank_number = 0;
  for (std::uint32_t c = 0; c < program.rank_classes().size(); ++c) {
    const RankClass& rank_class = program.rank_classes()[c];
    lane_free.emplace_back();
    for (std::uint32_t rank = 0; rank < rank_class.multiplicity; ++rank, ++rank_number) {
      const std::size_t offset = system.new_variable();
      system.values[offset] = start_offset_us.empty() ? 0.0 : start_offset_us[rank_number];
      std::vector<std::size_t> lanes(rank_class.lanes.size(), offset);
      std::vector<Wait> slots(rank_class.slot_count, Wait{offset, 0});
      for (std::uint32_t i = 0; i < rank_class.instances.size(); ++i) {
        const BlockInstance& instance = rank_class.instances[i];
        const Block& block = program.block(instance.block);
        std::vector<std::size_t> in_ports;
        for (const std::uint16_t slot : instance.in_slots) {
          in_ports.push_back(system.new_variable());
          system.equations.push_back({in_ports.back(), {slots[slot]}});
        }
        std::vector<TaskVariables> of_block;
        const auto variable = [&](std::uint32_t code) {
          if (code >= 2 * block.task_count()) return in_ports[code - 2 * block.task_count()];
          return code % 2 == 0 ? of_block[code / 2].start : of_block[code / 2].end;
        };
        for (std::uint32_t t = 0; t < block.task_count(); ++t) {
          of_block.push_back({system.new_variable(), system.new_variable()});
          const std::uint32_t block_lane = block.lane_of(TaskId{t}).index();
          std::size_t& free = lanes[instance.lanes.empty() ? block_lane : instance.lanes[block_lane]];
          Equation start{of_block[t].start, {Wait{free, 0}}};
          for (std::uint32_t e = block.first_edge()[t]; e < block.first_edge()[t + 1]; ++e) {
            start.waits.push_back({variable(block.sources()[e]), costs.delay_us(instance.block)[e]});
          }
          system.equations.push_back(std::move(start));
          if (block.tasks()[t].kind != TaskKind::collective) {
            system.equations.push_back(
                {of_block[t].end, {Wait{of_block[t].start, 0}}, costs.duration_us(instance.block)[t]});
          }
          free = of_block[t].end;
          tasks[{RankClassId{c}, rank, InstanceId{i}, TaskId{t}}] = of_block[t];
        }
        for (std::size_t p = 0; p < instance.out_slots.size(); ++p) {
          const OutPort& port = block.out_ports()[p];
          slots[instance.out_slots[p]] = {variable(port.source.code()), port.delay.value()};
        }
      }
      lane_free.back().push_back(std::move(lanes));
    }
  }

  // Everybody's arrivals, as each member sees them.
  for (const Collective& collective : program.collectives()) {
    for (std::uint32_t m = 0; m < collective.members.size(); ++m) {
      const CollectiveMember& member = collective.members[m];
      const BlockId block = program.rank_class(member.rank_class).instances[member.instance.index()].block;
      for (std::uint32_t rank = 0; rank < program.rank_class(member.rank_class).multiplicity; ++rank) {
        const TaskVariables& own = tasks.at({member.rank_class, rank, member.instance, member.task});
        Equation end{own.end, {Wait{own.start, 0}}, costs.duration_us(block)[member.task.index()]};
        for (std::uint32_t o = 0; o < collective.members.size(); ++o) {
          if (collective.kind == CollectiveKind::rooted_from &&
              (m == collective.root || o != collective.root)) {
            continue;
          }
          const CollectiveMember& other = collective.members[o];
          for (std::uint32_t r = 0; r < program.rank_class(other.rank_class).multiplicity; ++r) {
            if (collective.grouping == CollectiveGrouping::aligned && r != rank) continue;
            end.waits.push_back({tasks.at({other.rank_class, r, other.instance, other.task}).start, 0});
          }
        }
        system.equations.push_back(std::move(end));
      }
    }
  }

  if (!system.settle()) return std::nullopt;
  ReferenceTimes times;
  for (const auto& [ref, variables] : tasks) {
    times.tasks[ref] = {system.values[variables.start], system.values[variables.end]};
  }
  for (const auto& of_class : lane_free) {
    times.lane_free_us.emplace_back();
    for (const auto& of_rank : of_class) {
      std::vector<double>& free = times.lane_free_us.back().emplace_back();
      for (const std::size_t variable : of_rank) free.push_back(system.values[variable]);
    }
  }
  return times;
}

}  // namespace stepcast::fixtures

#include "tests/support/random_program.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace stepcast::fixtures {
namespace {

// Numbers without the distributions of the standard library, whose results depend on the library.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_{seed} {}
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  std::uint32_t between(std::uint32_t least, std::uint32_t most) { return least + below(most - least + 1); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }
  double time(bool whole) {
    if (chance(10)) return 0;
    return whole ? static_cast<double>(below(80)) / 8.0
                 : static_cast<double>(random_() >> 11) * 0x1p-53 * 10.0;
  }

 private:
  std::mt19937_64 random_;
};

constexpr std::uint32_t kClassLanes = 5;
constexpr std::uint16_t kSlots = 3;

// Even lanes of a class are CPU threads, odd ones streams; so are those of a block.
Lane lane(std::uint32_t number) {
  return {number % 2 == 0 ? LaneKind::cpu_thread : LaneKind::gpu_stream, "lane " + std::to_string(number)};
}

Block random_block(Dice& dice, const std::string& name, const RandomProgramOptions& options) {
  const std::uint32_t lanes = dice.between(1, 4), tasks = dice.between(0, options.max_tasks);
  const std::uint32_t in_ports = dice.below(3), out_ports = dice.below(3);
  const bool collectives = options.collectives && dice.chance(70);

  // Tasks 0, 1, 2, ... in an order in which they can run; they are added in another one that keeps the order
  // of each lane.
  std::vector<std::uint32_t> lane_of(tasks);
  for (std::uint32_t& l : lane_of) l = dice.below(lanes);
  std::vector<std::vector<std::uint32_t>> queues(lanes);
  for (std::uint32_t t = 0; t < tasks; ++t) queues[lane_of[t]].push_back(t);
  const bool shuffled = dice.chance(50);
  std::vector<std::uint32_t> added;
  std::vector<std::size_t> next(lanes, 0);
  for (std::uint32_t t = 0; t < tasks; ++t) {
    std::uint32_t l = lane_of[t];
    if (shuffled) {
      do {
        l = dice.below(lanes);
      } while (next[l] == queues[l].size());
    }
    added.push_back(queues[l][next[l]++]);
  }

  BlockBuilder b{name};
  for (std::uint32_t l = 0; l < lanes; ++l) b.add_lane(lane(l));
  for (std::uint32_t p = 0; p < in_ports; ++p) b.add_in_port("in " + std::to_string(p));
  std::vector<TaskId> id(tasks);
  for (const std::uint32_t t : added) {
    const TaskKind kind = collectives && dice.chance(25) ? TaskKind::collective : TaskKind::kernel;
    id[t] = b.add_task(LaneId{lane_of[t]}, {.kind = kind}, Microseconds{dice.time(options.whole_times)});
  }
  const auto moment = [&](std::uint32_t before) {  // of a task below `before`, or an in-port
    if (before == 0 || (in_ports > 0 && dice.chance(20)))
      return BlockBuilder::arrival_at(InPortId{dice.below(in_ports)});
    const TaskId task = id[dice.below(before)];
    return dice.chance(30) ? BlockBuilder::start_of(task) : BlockBuilder::end_of(task);
  };
  for (std::uint32_t t = 0; t < tasks; ++t) {
    for (std::uint32_t e = dice.below(4); e > 0; --e) {
      if (t == 0 && in_ports == 0) continue;
      b.add_edge(moment(t), id[t], Microseconds{dice.time(options.whole_times)}, {});
    }
  }
  for (std::uint32_t p = 0; p < out_ports; ++p) {
    if (tasks == 0 && in_ports == 0) continue;
    b.add_out_port("out " + std::to_string(p), moment(tasks), Microseconds{dice.time(options.whole_times)});
  }
  Result<Block> block = std::move(b).finish();
  if (!block.ok()) {
    std::fprintf(stderr, "random block: %s\n", block.error().message().c_str());
    std::abort();
  }
  return std::move(block).value();
}

template <class T>
void shuffle(Dice& dice, std::vector<T>& values) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[dice.below(static_cast<std::uint32_t>(i))]);
  }
}

BlockInstance random_instance(Dice& dice, const Program& program) {
  BlockInstance instance;
  instance.block = BlockId{dice.below(static_cast<std::uint32_t>(program.blocks().size()))};
  const Block& block = program.block(instance.block);
  if (dice.chance(60)) {
    std::vector<std::uint16_t> threads{0, 2, 4}, streams{1, 3};
    shuffle(dice, threads);
    shuffle(dice, streams);
    for (std::uint32_t l = 0; l < block.lanes().size(); ++l) {
      instance.lanes.push_back(l % 2 == 0 ? threads[l / 2] : streams[l / 2]);
    }
  }
  std::vector<std::uint16_t> slots{0, 1, 2};
  for (std::size_t p = 0; p < block.in_ports().size(); ++p) {
    instance.in_slots.push_back(static_cast<std::uint16_t>(dice.below(kSlots)));
  }
  shuffle(dice, slots);
  for (std::size_t p = 0; p < block.out_ports().size(); ++p) instance.out_slots.push_back(slots[p]);
  return instance;
}

// Joins the collective tasks of all classes, mostly in their order, and now and then a later one first.
void add_collectives(Dice& dice, Program& program) {
  std::vector<std::vector<CollectiveMember>> open(program.rank_classes().size());
  for (std::uint32_t c = 0; c < open.size(); ++c) {
    for (std::uint32_t i = 0; i < program.rank_classes()[c].instances.size(); ++i) {
      for (const TaskId t : program.block_of(RankClassId{c}, InstanceId{i}).collective_tasks()) {
        open[c].push_back({RankClassId{c}, InstanceId{i}, t});
      }
    }
  }
  for (;;) {
    std::vector<std::uint32_t> classes;
    for (std::uint32_t c = 0; c < open.size(); ++c) {
      if (!open[c].empty()) classes.push_back(c);
    }
    if (classes.empty()) return;
    shuffle(dice, classes);
    classes.resize(dice.between(1, static_cast<std::uint32_t>(classes.size())));
    Collective collective;
    bool equal = true;
    for (const std::uint32_t c : classes) {
      const std::size_t pick = open[c].size() > 1 && dice.chance(20) ? 1 : 0;
      collective.members.push_back(open[c][pick]);
      open[c].erase(open[c].begin() + static_cast<std::ptrdiff_t>(pick));
      equal =
          equal && program.rank_classes()[c].multiplicity == program.rank_classes()[classes[0]].multiplicity;
    }
    collective.kind = dice.chance(40) ? CollectiveKind::rooted_from : CollectiveKind::all;
    collective.root = dice.below(static_cast<std::uint32_t>(classes.size()));
    if (equal && dice.chance(50)) collective.grouping = CollectiveGrouping::aligned;
    collective.name = program.names.intern("collective " + std::to_string(program.collectives().size()));
    program.add_collective(std::move(collective));
  }
}

}  // namespace

Program random_program(std::uint64_t seed, const RandomProgramOptions& options) {
  for (std::uint64_t attempt = 0;; ++attempt) {
    Dice dice{seed * 1000003 + attempt};
    Program program;
    const std::uint32_t blocks = dice.between(1, options.max_blocks),
                        classes = dice.between(1, options.max_classes);
    for (std::uint32_t b = 0; b < blocks; ++b) {
      program.add_block(random_block(dice, "block " + std::to_string(b), options));
    }
    const std::uint32_t multiplicity = dice.chance(50) ? dice.between(1, options.max_multiplicity) : 0;
    for (std::uint32_t c = 0; c < classes; ++c) {
      RankClass rank_class;
      rank_class.name = "class " + std::to_string(c);
      rank_class.multiplicity = multiplicity > 0 ? multiplicity : dice.between(1, options.max_multiplicity);
      for (std::uint32_t l = 0; l < kClassLanes; ++l) rank_class.lanes.push_back(lane(l));
      rank_class.slot_count = kSlots;
      const RankClassId id = program.add_rank_class(std::move(rank_class));
      for (std::uint32_t i = dice.between(0, options.max_instances); i > 0; --i) {
        program.add_instance(id, random_instance(dice, program));
      }
    }
    add_collectives(dice, program);
    const Status status = program.check();
    if (status.ok()) return program;
    const bool circle = status.error().message().find("in a circle") != std::string::npos;
    if (circle && options.may_wait_in_circles) return program;
    if (!circle) {
      std::fprintf(stderr, "random program: %s\n", status.error().message().c_str());
      std::abort();
    }
  }
}

std::vector<double> random_offsets(std::uint64_t seed, std::size_t count, bool whole) {
  Dice dice{seed * 7919 + 1};
  std::vector<double> offsets(count);
  for (double& offset : offsets) offset = dice.time(whole);
  return offsets;
}

Program with_classes_in_order(const Program& program, const std::vector<std::uint32_t>& classes) {
  Program result;
  result.names = program.names;
  result.stacks = program.stacks;
  for (const Block& block : program.blocks()) result.add_block(block);
  std::vector<RankClassId> new_id(classes.size());
  for (const std::uint32_t c : classes) new_id[c] = result.add_rank_class(program.rank_classes()[c]);
  for (Collective collective : program.collectives()) {
    for (CollectiveMember& member : collective.members) member.rank_class = new_id[member.rank_class.index()];
    result.add_collective(std::move(collective));
  }
  return result;
}

}  // namespace stepcast::fixtures

#include "stepcast/program/program.h"

#include <functional>
#include <limits>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sketch.h"

namespace stepcast::program_test {
namespace {

using fixtures::BlockSketch;
using fixtures::ProgramSketch;
using fixtures::streams;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr InstanceId kFirst{0};

std::string error_of(const Program& program) {
  const Status status = program.check();
  return status.ok() ? "no error" : status.error().message();
}

// Two classes of one rank, each with one instance of a block with an in-port, an out-port, a kernel (task 0)
// and a collective (task 1) that joins both. Valid; each test breaks one thing.
struct Pair {
  Pair() {
    BlockSketch b{"layer", 2};
    const InPortId in = b.in();
    const TaskId work = b.work(0, 5), join = b.join(1, 3);
    b.edge(b.arrival(in), work).edge(b.end(work), join).out(b.end(join));
    const BlockId block = sketch.block(b);
    for (int c = 0; c < 2; ++c) {
      RankClass rank_class;
      rank_class.name = c == 0 ? "even" : "odd";
      rank_class.lanes = streams(2);
      rank_class.slot_count = 2;
      rank_class.instances = {{.block = block, .in_slots = {0}, .out_slots = {1}}};
      classes[c] = rank_class;
    }
    collective.name = sketch.program.names.intern("all_reduce");
    collective.members = {{RankClassId{0}, kFirst, TaskId{1}}, {RankClassId{1}, kFirst, TaskId{1}}};
  }
  BlockInstance& instance() { return classes[1].instances[0]; }
  std::string error() {
    for (RankClass& c : classes) sketch.program.add_rank_class(c);
    sketch.program.add_collective(collective);
    return error_of(sketch.program);
  }
  ProgramSketch sketch;
  RankClass classes[2];
  Collective collective;
};

TEST(ProgramCheck, ValidPrograms) {
  EXPECT_EQ(error_of(Program{}), "no error");
  EXPECT_EQ(Pair{}.error(), "no error");
}

TEST(ProgramCheck, Instances) {
  const std::string place = "rank class \"odd\", instance 0 (block \"layer\"): ";
  struct Case {
    std::function<void(BlockInstance&)> change;
    std::string error;
  };
  const Case cases[] = {
      {[](BlockInstance& i) { i.block = BlockId{4}; },
       "rank class \"odd\", instance 0: unknown block, found block 4, expected one of 1"},
      {[](BlockInstance& i) { i.lanes = {0}; },
       place + "a lane is not bound, found 1 bound lanes, expected 2, one for each lane of the block"},
      {[](BlockInstance& i) {
         i.lanes = {0, 2};
       },
       place + "lane \"stream 1\" is bound to an unknown lane, found lane 2, expected one of the 2 lanes of "
               "the class"},
      {[](BlockInstance& i) {
         i.lanes = {1, 1};
       },
       place +
           "lanes \"stream 0\" and \"stream 1\" are bound to the same lane, found lane 1 of the class twice"},
      {[](BlockInstance& i) { i.in_slots = {}; },
       place +
           "an in-port is not bound, found 0 bound in-ports, expected 1, one for each in-port of the block"},
      {[](BlockInstance& i) { i.in_slots = {2}; },
       place +
           "in-port 0 is bound to an unknown slot, found slot 2, expected one of the 2 slots of the class"},
      {[](BlockInstance& i) {
         i.out_slots = {0, 1};
       },
       place + "an out-port is not bound, found 2 bound out-ports, expected 1, one for each out-port of the "
               "block"},
      {[](BlockInstance& i) { i.out_slots = {7}; },
       place +
           "out-port 0 is bound to an unknown slot, found slot 7, expected one of the 2 slots of the class"},
  };
  for (const Case& c : cases) {
    Pair pair;
    c.change(pair.instance());
    EXPECT_EQ(pair.error(), c.error);
  }
}

TEST(ProgramCheck, ClassWithoutRanks) {
  Pair pair;
  pair.classes[1].multiplicity = 0;
  EXPECT_EQ(pair.error(), "rank class \"odd\": has no ranks, found multiplicity 0, expected 1 or more");
  Program unnamed;
  unnamed.add_rank_class({.multiplicity = 0});
  EXPECT_EQ(error_of(unnamed), "rank class 0: has no ranks, found multiplicity 0, expected 1 or more");
}

TEST(ProgramCheck, LaneOfAnotherKind) {
  Pair pair;
  pair.classes[1].lanes[0].kind = LaneKind::cpu_thread;
  EXPECT_EQ(pair.error(),
            "rank class \"odd\", instance 0 (block \"layer\"): lane \"stream 0\" is bound to a lane of "
            "another kind, found a CPU thread, expected a GPU stream");
}

TEST(ProgramCheck, SlotWrittenTwice) {
  ProgramSketch s;
  BlockSketch b{"twice", 1};
  const TaskId work = b.work(0, 1);
  b.out(b.start(work)).out(b.end(work));
  const BlockId block = s.block(b);
  s.program.add_rank_class({.name = "rank",
                            .lanes = streams(1),
                            .slot_count = 4,
                            .instances = {{.block = block, .out_slots = {3, 3}}}});
  EXPECT_EQ(error_of(s.program),
            "rank class \"rank\", instance 0 (block \"twice\"): two out-ports write the same slot, found "
            "slot 3 twice");
}

TEST(ProgramCheck, Collectives) {
  struct Case {
    std::function<void(Pair&)> change;
    std::string error;
  };
  const Case cases[] = {
      {[](Pair& p) { p.collective.members.clear(); }, "collective 0 (\"all_reduce\"): has no members"},
      {[](Pair& p) {
         p.collective.kind = CollectiveKind::rooted_from;
         p.collective.root = 2;
       },
       "collective 0 (\"all_reduce\"): root out of range, found root 2, expected the position of one of 2 "
       "members"},
      {[](Pair& p) { p.collective.members[1].rank_class = RankClassId{5}; },
       "collective 0 (\"all_reduce\"), member 1: unknown rank class, found rank class 5, expected one of 2"},
      {[](Pair& p) { p.collective.members[1].instance = InstanceId{1}; },
       "collective 0 (\"all_reduce\"), member 1: unknown instance, found instance 1, expected one of 1 of "
       "rank class \"odd\""},
      {[](Pair& p) { p.collective.members[1].task = TaskId{2}; },
       "collective 0 (\"all_reduce\"), member 1: unknown task, found task 2, expected one of 2 of block "
       "\"layer\""},
      {[](Pair& p) { p.collective.members[1].task = TaskId{}; },
       "collective 0 (\"all_reduce\"), member 1: unknown task, found task 4294967295, expected one of 2 of "
       "block \"layer\""},
      {[](Pair& p) { p.collective.members[1].task = TaskId{0}; },
       "collective 0 (\"all_reduce\"), member 1 (task 0 of instance 0 of rank class \"odd\"): is not a "
       "collective task, found a kernel"},
      {[](Pair& p) { p.collective.members[1] = p.collective.members[0]; },
       "collective 0 (\"all_reduce\"), member 1 (task 1 of instance 0 of rank class \"even\"): a repeated "
       "member, found the same task as member 0"},
      {[](Pair& p) { p.collective.members.pop_back(); },
       "rank class \"odd\", instance 0 (block \"layer\"): collective task 1 belongs to no collective"},
      {[](Pair& p) { p.sketch.program.add_collective(p.collective); },
       "collective 1 (\"all_reduce\"), member 0 (task 1 of instance 0 of rank class \"even\"): belongs to "
       "two collectives, found the task in collective 0 (\"all_reduce\") as well"},
      {[](Pair& p) {
         p.collective.grouping = CollectiveGrouping::aligned;
         p.classes[0].multiplicity = 2;
       },
       "collective 0 (\"all_reduce\"): an aligned group of classes with unequal multiplicities, found 2 of "
       "rank class \"even\" and 1 of rank class \"odd\""},
  };
  for (const Case& c : cases) {
    Pair pair;
    c.change(pair);
    EXPECT_EQ(pair.error(), c.error);
  }
}

// Each class has two collectives on one stream, in opposite orders.
TEST(ProgramCheck, CircularWait) {
  ProgramSketch s;
  BlockSketch b{"exchange", 1};
  b.join(0, 1);
  b.join(0, 1);
  const BlockId block = s.block(b);
  const RankClassId one = s.ranks(1, 1, {block}), other = s.ranks(1, 1, {block});
  const TaskId first{0}, second{1};
  s.join(CollectiveKind::all, {{one, kFirst, first}, {other, kFirst, second}});
  s.join(CollectiveKind::all, {{one, kFirst, second}, {other, kFirst, first}});
  EXPECT_EQ(
      error_of(s.program),
      "collectives wait for each other in a circle: rank class \"class 0\" cannot begin collective 1 (task 1 "
      "of instance 0) before collective 0 (task 0 of instance 0) is over; rank class \"class 1\" cannot "
      "begin collective 0 (task 1 of instance 0) before collective 1 (task 0 of instance 0) is over");
}

// The same with a rank whose two collectives are in different instances, and a third rank that takes no part
// in the circle.
TEST(ProgramCheck, CircularWaitAcrossInstances) {
  ProgramSketch s;
  BlockSketch b{"step", 1};
  b.work(0, 1);
  b.join(0, 1);
  const BlockId block = s.block(b);
  const RankClassId a = s.ranks(1, 1, {block, block}), c = s.ranks(1, 1, {block, block}),
                    d = s.ranks(1, 1, {block});
  const TaskId task{1};
  s.join(CollectiveKind::all, {{a, InstanceId{0}, task}, {c, InstanceId{1}, task}});
  s.join(CollectiveKind::all, {{a, InstanceId{1}, task}, {c, InstanceId{0}, task}, {d, InstanceId{0}, task}});
  EXPECT_EQ(
      error_of(s.program),
      "collectives wait for each other in a circle: rank class \"class 0\" cannot begin collective 1 (task 1 "
      "of instance 1) before collective 0 (task 1 of instance 0) is over; rank class \"class 1\" cannot "
      "begin collective 0 (task 1 of instance 1) before collective 1 (task 1 of instance 0) is over");
}

TEST(Program, Counts) {
  ProgramSketch s;
  BlockSketch two{"two", 1}, one{"one", 1};
  two.work(0, 1);
  two.work(0, 1);
  one.work(0, 1);
  const BlockId b2 = s.block(two), b1 = s.block(one);
  const RankClassId c = s.ranks(3, 1, {b2, b1}), d = s.ranks(4, 1);
  for (int i = 0; i < 10; ++i) s.program.add_instance(d, {.block = b2});
  EXPECT_EQ(s.program.rank_count(), 7u);
  EXPECT_EQ(s.program.expanded_task_count(), 3u * 3 + 4u * 20);
  s.program.set_multiplicity(c, 1);
  EXPECT_EQ(s.program.expanded_task_count(), 3u + 4u * 20);
  EXPECT_EQ(s.program.block_of(d, kFirst).name(), "two");
}

TEST(OpStacks, AreChains) {
  StringTable names;
  OpStacks stacks;
  const StackId outer = stacks.push(StackId{}, names.intern("forward"));
  const StackId inner = stacks.push(outer, names.intern("aten::linear"));
  EXPECT_EQ(names.text(stacks.name(inner)), "aten::linear");
  EXPECT_EQ(stacks.parent(inner), outer);
  EXPECT_FALSE(stacks.parent(outer).valid());
  EXPECT_EQ(stacks.size(), 2u);
}

Program two_blocks() {
  ProgramSketch s;
  BlockBuilder b{"shared"};
  const LaneId x = b.add_lane({LaneKind::gpu_stream, "x"}), y = b.add_lane({LaneKind::gpu_stream, "y"});
  const TaskId first = b.add_task(x, {}, Microseconds{10}), second = b.add_task(y, {}, Microseconds{20});
  b.add_edge(b.start_of(first), second, Microseconds{4},
             {.origin = EdgeOrigin::device_busy, .share_of_source = 0.5F});
  b.add_edge(b.end_of(first), second, Microseconds{3}, {});
  s.program.add_block(std::move(b).finish().value());
  BlockSketch other{"other", 1};
  other.work(0, 7);
  s.block(other);
  return std::move(s.program);
}

TEST(Costs, BeginAsTheBlocks) {
  const Program program = two_blocks();
  Costs costs{program};
  EXPECT_EQ(costs.block_count(), 2u);
  EXPECT_THAT(costs.duration_us(BlockId{0}), ElementsAre(10, 20));
  EXPECT_THAT(costs.delay_us(BlockId{0}), ElementsAre(4, 3));
  EXPECT_THAT(costs.duration_us(BlockId{1}), ElementsAre(7));
  EXPECT_TRUE(costs.delay_us(BlockId{1}).empty());
  EXPECT_TRUE(costs.check(program).ok());
  EXPECT_GE(costs.memory_bytes(), 5 * sizeof(double));
}

// 0.5 of the source's 12 us; the plain delay stays.
TEST(Costs, SharedDelaysFollowTheirSource) {
  const Program program = two_blocks();
  Costs costs{program};
  costs.duration_us(BlockId{0})[0] = 12;
  costs.rescale_shared_delays(program);
  EXPECT_THAT(costs.delay_us(BlockId{0}), ElementsAre(6, 3));
}

TEST(Costs, CheckNamesWhatIsWrong) {
  const Program program = two_blocks();
  const auto error = [&](const std::function<void(Costs&)>& change) {
    Costs costs{program};
    change(costs);
    const Status status = costs.check(program);
    return status.ok() ? "no error" : status.error().message();
  };
  EXPECT_EQ(error([](Costs& c) { c.duration_us(BlockId{1})[0] = -2; }),
            "costs: invalid duration of task 0 of block 1 (\"other\"), found -2 us, expected a finite time "
            "that is not negative");
  EXPECT_EQ(error([](Costs& c) { c.delay_us(BlockId{0})[1] = std::numeric_limits<double>::quiet_NaN(); }),
            "costs: invalid delay of edge 1 of block 0 (\"shared\"), found nan us, expected a finite time "
            "that is not negative");
  EXPECT_EQ(error([](Costs& c) { c.delay_us(BlockId{0})[0] = std::numeric_limits<double>::infinity(); }),
            "costs: invalid delay of edge 0 of block 0 (\"shared\"), found inf us, expected a finite time "
            "that is not negative");
  EXPECT_EQ(error([](Costs& c) { c = Costs{Program{}}; }),
            "costs of another program, found 0 blocks, expected 2");
  EXPECT_EQ(
      error([](Costs& c) {
        Program swapped;
        swapped.add_block(two_blocks().blocks()[1]);
        swapped.add_block(two_blocks().blocks()[0]);
        c = Costs{swapped};
      }),
      "costs of another program: block 0 (\"shared\"), found 1 durations and 0 delays, expected 2 and 2");
}

}  // namespace
}  // namespace stepcast::program_test

// Cases worked by hand: the arithmetic stands beside each.
#include "stepcast/simulate/engine.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sketch.h"

namespace stepcast {

static void PrintTo(const Interval& i, std::ostream* out) {
  *out << "[" << i.start_us << ", " << i.end_us << "]";
}

}  // namespace stepcast

namespace stepcast::engine_test {
namespace {

using fixtures::BlockSketch;
using fixtures::ProgramSketch;
using fixtures::simulated;
using fixtures::streams;
using ::testing::ElementsAre;

constexpr InstanceId kFirst{0}, kSecond{1};

::testing::Matcher<Interval> is(double start_us, double end_us) {
  return ::testing::AllOf(::testing::Field(&Interval::start_us, start_us),
                          ::testing::Field(&Interval::end_us, end_us));
}

// The example of program/block.h: a 4 us launch, and 2 us after its end a kernel of 50 us.
TEST(Engine, LaunchAndKernel) {
  ProgramSketch s;
  BlockSketch b{"forward", 2};
  const TaskId launch = b.work(0, 4), kernel = b.work(1, 50);
  b.edge(b.end(launch), kernel, 2);
  const RankClassId rank = s.ranks(1, 2, {s.block(b)});
  const Timeline t = simulated(s.program);
  EXPECT_THAT(t.instance(rank, 0, kFirst), ElementsAre(is(0, 4), is(6, 56)));
  EXPECT_THAT(t.at({.rank_class = rank, .instance = kFirst, .task = kernel}), is(6, 56));
  EXPECT_THAT(t.lane_free_us(rank), ElementsAre(4, 56));
  EXPECT_EQ(t.rank_end_us(rank), 56);
  EXPECT_EQ(t.end_us(), 56);
  EXPECT_FALSE(t.unfolded());
  EXPECT_GE(t.memory_bytes(), 2 * sizeof(Interval));
}

// A kernel may start inside its launch: the edge leaves the start of the launch. 0 + 3 = 3 < 10 = the end of
// the launch. The second kernel waits for its stream, 3 + 20 = 23, longer than for its launch, 10 + 3.
TEST(Engine, EdgesFromStarts) {
  ProgramSketch s;
  BlockSketch b{"launches", 2};
  const TaskId launch1 = b.work(0, 10), kernel1 = b.work(1, 20), launch2 = b.work(0, 10),
               kernel2 = b.work(1, 5);
  b.edge(b.start(launch1), kernel1, 3).edge(b.start(launch2), kernel2, 3);
  const RankClassId rank = s.ranks(1, 2, {s.block(b)});
  EXPECT_THAT(simulated(s.program).instance(rank, 0, kFirst),
              ElementsAre(is(0, 10), is(3, 23), is(10, 20), is(23, 28)));
}

// Two lanes meet: max(end of 0 + 1, end of 1 + 4) = max(6, 7) = 7.
TEST(Engine, LatestEdgeCounts) {
  ProgramSketch s;
  BlockSketch b{"meet", 3};
  const TaskId a = b.work(0, 5), c = b.work(1, 3), d = b.work(2, 2);
  b.edge(b.end(a), d, 1).edge(b.end(c), d, 4);
  const RankClassId rank = s.ranks(1, 3, {s.block(b)});
  EXPECT_THAT(simulated(s.program).instance(rank, 0, kFirst), ElementsAre(is(0, 5), is(0, 3), is(7, 9)));
}

// ---------------------------------------------------------------------------------------------------------
// Collectives. Every rank works for `work[c]` and joins; a kernel follows on the same lane.

struct Joined {
  Joined(CollectiveKind kind, std::vector<double> work, std::vector<double> transfer, std::uint32_t root = 0,
         std::uint32_t multiplicity = 1, CollectiveGrouping grouping = CollectiveGrouping::spanning) {
    std::vector<CollectiveMember> members;
    for (std::size_t c = 0; c < work.size(); ++c) {
      BlockSketch b{"rank", 1};
      b.work(0, work[c]);
      const TaskId join = b.join(0, transfer[c]);
      b.work(0, 1);
      members.push_back({sketch.ranks(multiplicity, 1, {sketch.block(b)}), kFirst, join});
    }
    sketch.join(kind, members, root, grouping);
  }
  ProgramSketch sketch;
};

std::span<const Interval> of_class(const Timeline& t, int c, std::uint32_t rank = 0) {
  return t.instance(RankClassId{c}, rank, kFirst);
}

// Arrivals 10, 30, 20: the transfer starts at 30 for all; each leaves after its own duration.
TEST(Collectives, All) {
  const Joined j{CollectiveKind::all, {10, 30, 20}, {5, 6, 7}};
  const Timeline t = simulated(j.sketch.program);
  EXPECT_THAT(of_class(t, 0), ElementsAre(is(0, 10), is(10, 35), is(35, 36)));
  EXPECT_THAT(of_class(t, 1), ElementsAre(is(0, 30), is(30, 36), is(36, 37)));
  EXPECT_THAT(of_class(t, 2), ElementsAre(is(0, 20), is(20, 37), is(37, 38)));
  EXPECT_EQ(t.end_us(), 38);
}

// The root (member 1) arrives at 30 and leaves at 36, without waiting. Members that came at 10 and 20 wait
// for it: 30 + 5 and 30 + 7; the one that came at 50 finds it there: 50 + 8.
TEST(Collectives, RootedFrom) {
  const Joined j{CollectiveKind::rooted_from, {10, 30, 20, 50}, {5, 6, 7, 8}, 1};
  const Timeline t = simulated(j.sketch.program);
  EXPECT_THAT(of_class(t, 0)[1], is(10, 35));
  EXPECT_THAT(of_class(t, 1)[1], is(30, 36));
  EXPECT_THAT(of_class(t, 2)[1], is(20, 37));
  EXPECT_THAT(of_class(t, 3)[1], is(50, 58));
}

// Two classes of two ranks that start at 0, 100 and 7, 50. Arrivals: 10, 110 and 10, 53.
// Aligned: ranks 0 meet at max(10, 10), ranks 1 at max(110, 53). Spanning: all four meet at 110.
TEST(Collectives, AlignedAndSpanning) {
  const SimulateOptions options{.unfold = true, .start_offset_us = {0, 100, 7, 50}};
  const Joined aligned{CollectiveKind::all, {10, 3}, {5, 5}, 0, 2, CollectiveGrouping::aligned};
  const Timeline a = simulated(aligned.sketch.program, options);
  EXPECT_TRUE(a.unfolded());
  EXPECT_EQ(a.copies(RankClassId{0}), 2u);
  EXPECT_THAT(of_class(a, 0, 0)[1], is(10, 15));
  EXPECT_THAT(of_class(a, 1, 0)[1], is(10, 15));
  EXPECT_THAT(of_class(a, 0, 1)[1], is(110, 115));
  EXPECT_THAT(of_class(a, 1, 1)[1], is(53, 115));
  EXPECT_EQ(a.start_offset_us(RankClassId{1}, 1), 50);

  const Joined spanning{CollectiveKind::all, {10, 3}, {5, 5}, 0, 2};
  const Timeline s = simulated(spanning.sketch.program, options);
  EXPECT_THAT(of_class(s, 0, 0)[1], is(10, 115));
  EXPECT_THAT(of_class(s, 0, 1)[1], is(110, 115));
  EXPECT_THAT(of_class(s, 1, 0)[1], is(10, 115));
  EXPECT_THAT(of_class(s, 1, 1)[1], is(53, 115));
}

// As above, rooted in class 0: aligned, rank 0 of class 1 waits for rank 0 of class 0 (10), rank 1 for rank 1
// (110); spanning, both wait for the last root (110).
TEST(Collectives, RootedGroups) {
  const SimulateOptions options{.unfold = true, .start_offset_us = {0, 100, 7, 50}};
  const auto times = [&](CollectiveGrouping grouping, int c) {
    const Joined j{CollectiveKind::rooted_from, {10, 3}, {5, 5}, 0, 2, grouping};
    const Timeline t = simulated(j.sketch.program, options);
    return std::vector<Interval>{of_class(t, c, 0)[1], of_class(t, c, 1)[1]};
  };
  using enum CollectiveGrouping;
  EXPECT_THAT(times(aligned, 0), ElementsAre(is(10, 15), is(110, 115)));
  EXPECT_THAT(times(aligned, 1), ElementsAre(is(10, 15), is(53, 115)));
  EXPECT_THAT(times(spanning, 0), ElementsAre(is(10, 15), is(110, 115)));
  EXPECT_THAT(times(spanning, 1), ElementsAre(is(10, 115), is(53, 115)));
}

// One class of three ranks that joins itself: 5 + 1, 7 + 1, 6 + 1, so all transfer at 8.
TEST(Collectives, RanksOfOneClass) {
  const Joined j{CollectiveKind::all, {1}, {10}, 0, 3};
  const Timeline t = simulated(j.sketch.program, {.unfold = true, .start_offset_us = {5, 7, 6}});
  EXPECT_THAT(of_class(t, 0, 0)[1], is(6, 18));
  EXPECT_THAT(of_class(t, 0, 1)[1], is(8, 18));
  EXPECT_THAT(of_class(t, 0, 2)[1], is(7, 18));
  EXPECT_EQ(t.rank_end_us(RankClassId{0}, 2), 19);
}

// Two independent collectives X and Y on two streams; class 0 lists X first, class 1 lists Y first. Neither
// needs the end of its first before it joins its second: X transfers at max(4, 9) = 9, Y at max(6, 2) = 6.
TEST(Collectives, IndependentOnesInDifferentOrders) {
  ProgramSketch s;
  BlockSketch x_first{"x first", 2}, y_first{"y first", 2};
  x_first.work(0, 4);
  const TaskId x0 = x_first.join(0, 10);
  x_first.work(1, 6);
  const TaskId y0 = x_first.join(1, 10);
  y_first.work(1, 2);
  const TaskId y1 = y_first.join(1, 10);
  y_first.work(0, 9);
  const TaskId x1 = y_first.join(0, 10);
  const RankClassId a = s.ranks(1, 2, {s.block(x_first)}), b = s.ranks(1, 2, {s.block(y_first)});
  s.join(CollectiveKind::all, {{a, kFirst, x0}, {b, kFirst, x1}});
  s.join(CollectiveKind::all, {{a, kFirst, y0}, {b, kFirst, y1}});
  const Timeline t = simulated(s.program);
  EXPECT_THAT(t.instance(a, 0, kFirst), ElementsAre(is(0, 4), is(4, 19), is(0, 6), is(6, 16)));
  EXPECT_THAT(t.instance(b, 0, kFirst), ElementsAre(is(0, 2), is(2, 16), is(0, 9), is(9, 19)));
}

// Now work that needs X stands between X and Y in class 0, and work that needs Y between Y and X in class 1:
// no class can go on in block order, but Y does not wait for that work. X transfers at max(4, 2) = 4, Y at
// max(1, 3) = 3 (first tasks of the lanes).
TEST(Collectives, WorkBetweenThemIsOvertaken) {
  ProgramSketch s;
  BlockSketch one{"one", 3}, other{"other", 3};
  one.work(0, 4);
  const TaskId x0 = one.join(0, 10);
  const TaskId needs_x = one.work(2, 5);
  one.edge(one.end(x0), needs_x);
  one.work(1, 1);
  const TaskId y0 = one.join(1, 10);
  other.work(1, 3);
  const TaskId y1 = other.join(1, 10);
  const TaskId needs_y = other.work(2, 5);
  other.edge(other.end(y1), needs_y);
  other.work(0, 2);
  const TaskId x1 = other.join(0, 10);
  const RankClassId a = s.ranks(1, 3, {s.block(one)}), b = s.ranks(1, 3, {s.block(other)});
  s.join(CollectiveKind::all, {{a, kFirst, x0}, {b, kFirst, x1}});
  s.join(CollectiveKind::all, {{a, kFirst, y0}, {b, kFirst, y1}});
  const Timeline t = simulated(s.program);
  EXPECT_THAT(t.instance(a, 0, kFirst), ElementsAre(is(0, 4), is(4, 14), is(14, 19), is(0, 1), is(1, 13)));
  EXPECT_THAT(t.instance(b, 0, kFirst), ElementsAre(is(0, 3), is(3, 13), is(13, 18), is(0, 2), is(2, 14)));
}

// A rank that meets itself: two tasks on two lanes arrive at 3 and 8.
TEST(Collectives, TwoTasksOfOneRank) {
  ProgramSketch s;
  BlockSketch b{"self", 2};
  b.work(0, 3);
  const TaskId send = b.join(0, 1);
  b.work(1, 8);
  const TaskId receive = b.join(1, 2);
  const RankClassId rank = s.ranks(1, 2, {s.block(b)});
  s.join(CollectiveKind::all, {{rank, kFirst, send}, {rank, kFirst, receive}});
  EXPECT_THAT(simulated(s.program).instance(rank, 0, kFirst),
              ElementsAre(is(0, 3), is(3, 9), is(0, 8), is(8, 10)));
}

// An early send is no barrier: each class sends to the other before it receives, on one lane. Sends end at 5
// + 1 and 7 + 1; what is sent by the other has been there since 7 and 5: receives end at max(6, 7) + 4 and
// max(8, 5) + 4.
TEST(Collectives, EarlySendsDoNotWait) {
  ProgramSketch s;
  BlockSketch a{"a", 1}, b{"b", 1};
  a.work(0, 5);
  b.work(0, 7);
  const TaskId send_a = a.join(0, 1), receive_a = a.join(0, 4);
  const TaskId send_b = b.join(0, 1), receive_b = b.join(0, 4);
  const RankClassId ra = s.ranks(1, 1, {s.block(a)}), rb = s.ranks(1, 1, {s.block(b)});
  s.join(CollectiveKind::rooted_from, {{ra, kFirst, send_a}, {rb, kFirst, receive_b}}, 0);
  s.join(CollectiveKind::rooted_from, {{ra, kFirst, receive_a}, {rb, kFirst, send_b}}, 1);
  const Timeline t = simulated(s.program);
  EXPECT_THAT(t.instance(ra, 0, kFirst), ElementsAre(is(0, 5), is(5, 6), is(6, 11)));
  EXPECT_THAT(t.instance(rb, 0, kFirst), ElementsAre(is(0, 7), is(7, 8), is(8, 12)));
}

// ---------------------------------------------------------------------------------------------------------
// Instances, slots

// A load of 10 on lane 1 leaves "loaded" 3 after its end. Read by the next instance, whose work on lane 0
// starts at 13; the slot that nobody wrote holds the start offset.
TEST(Slots, CarryResults) {
  ProgramSketch s;
  BlockSketch load{"load", 2}, use{"use", 1};
  const TaskId loading = load.work(1, 10);
  load.out(load.end(loading), 3);
  const InPortId loaded = use.in(), never = use.in();
  const TaskId first = use.work(0, 2), second = use.work(0, 2);
  use.edge(use.arrival(never), first, 1).edge(use.arrival(loaded), second);
  const BlockId b_load = s.block(load), b_use = s.block(use);
  const RankClassId rank = s.program.add_rank_class(
      {.name = "rank",
       .lanes = streams(2),
       .slot_count = 2,
       .instances = {{.block = b_load, .out_slots = {0}}, {.block = b_use, .in_slots = {0, 1}}}});
  const Timeline t = simulated(s.program);
  EXPECT_THAT(t.instance(rank, 0, kSecond), ElementsAre(is(1, 3), is(13, 15)));
  // With offset 100: the load ends at 110, so 113; the slot not written holds 100.
  const Timeline late = simulated(s.program, {.start_offset_us = {100}});
  EXPECT_THAT(late.instance(rank, 0, kSecond), ElementsAre(is(101, 103), is(113, 115)));
}

// Reading comes before writing: the instance gets what its predecessor left (5 + 0), and leaves its own end.
TEST(Slots, AreReadBeforeTheyAreWritten) {
  ProgramSketch s;
  BlockSketch make{"make", 1}, pass{"pass", 2};
  make.out(make.end(make.work(0, 5)));
  const InPortId in = pass.in();
  const TaskId work = pass.work(1, 2);
  pass.edge(pass.arrival(in), work).out(pass.end(work), 1);
  const BlockId b_make = s.block(make), b_pass = s.block(pass);
  const BlockInstance passing{.block = b_pass, .in_slots = {0}, .out_slots = {0}};
  const RankClassId rank =
      s.program.add_rank_class({.name = "rank",
                                .lanes = streams(2),
                                .slot_count = 1,
                                .instances = {{.block = b_make, .out_slots = {0}}, passing, passing}});
  const Timeline t = simulated(s.program);
  EXPECT_THAT(t.instance(rank, 0, InstanceId{1}), ElementsAre(is(5, 7)));
  EXPECT_THAT(t.instance(rank, 0, InstanceId{2}), ElementsAre(is(8, 10)));  // 7 + 1
}

// Slots swapped by an instance that only passes them on: 10 goes to slot 0, 4 to slot 1.
TEST(Slots, MayBePassedOnWithoutTasks) {
  ProgramSketch s;
  BlockSketch make{"make", 2}, swap{"swap", 0}, use{"use", 1};
  make.out(make.end(make.work(0, 4))).out(make.end(make.work(1, 10)));
  const InPortId x = swap.in(), y = swap.in();
  swap.out(swap.arrival(x)).out(swap.arrival(y));
  const InPortId in = use.in();
  use.edge(use.arrival(in), use.work(0, 1));
  const BlockId b_make = s.block(make), b_swap = s.block(swap), b_use = s.block(use);
  const RankClassId rank =
      s.program.add_rank_class({.name = "rank",
                                .lanes = streams(2),
                                .slot_count = 2,
                                .instances = {{.block = b_make, .out_slots = {0, 1}},
                                              {.block = b_swap, .in_slots = {0, 1}, .out_slots = {1, 0}},
                                              {.block = b_use, .in_slots = {0}}}});
  EXPECT_THAT(simulated(s.program).instance(rank, 0, InstanceId{2}), ElementsAre(is(10, 11)));
}

// A collective's end that reaches its reader through two slots: X (arrivals 1 and 20, transfer 10, end 30) is
// left in slot 0, passed on to slot 1 (+2) by an instance without tasks, and read in a fourth instance: 32.
// Meanwhile the class joins Y, for which the other class waits before it comes to X: Y transfers at max(1, 0)
// = 1 and ends at 11; then 9 of work until 20.
TEST(Slots, OfACollectiveThatIsStillOpen) {
  ProgramSketch s;
  BlockSketch join_x{"join x", 3}, pass{"pass", 0}, join_y{"join y", 3}, use{"use", 3}, other{"other", 1};
  join_x.work(0, 1);
  const TaskId x0 = join_x.join(0, 10);
  join_x.out(join_x.end(x0));
  const InPortId in = pass.in();
  pass.out(pass.arrival(in), 2);
  join_y.work(1, 1);
  const TaskId y0 = join_y.join(1, 10);
  const InPortId read = use.in();
  use.edge(use.arrival(read), use.work(2, 1));
  const TaskId y1 = other.join(0, 10);
  other.work(0, 9);
  const TaskId x1 = other.join(0, 10);
  const BlockId bx = s.block(join_x), bp = s.block(pass), by = s.block(join_y), bu = s.block(use),
                bo = s.block(other);
  const RankClassId a =
      s.program.add_rank_class({.name = "a",
                                .lanes = streams(3),
                                .slot_count = 2,
                                .instances = {{.block = bx, .out_slots = {0}},
                                              {.block = bp, .in_slots = {0}, .out_slots = {1}},
                                              {.block = by},
                                              {.block = bu, .in_slots = {1}}}});
  const RankClassId b = s.ranks(1, 1, {bo});
  s.join(CollectiveKind::all, {{a, InstanceId{0}, x0}, {b, kFirst, x1}});
  s.join(CollectiveKind::all, {{a, InstanceId{2}, y0}, {b, kFirst, y1}});
  const Timeline t = simulated(s.program);
  EXPECT_THAT(t.instance(b, 0, kFirst), ElementsAre(is(0, 11), is(11, 20), is(20, 30)));
  EXPECT_THAT(t.instance(a, 0, InstanceId{0})[1], is(1, 30));
  EXPECT_THAT(t.instance(a, 0, InstanceId{3}), ElementsAre(is(32, 33)));
}

// 4 layers of 5 us on lane 0; each may start 2 us after the *start* of the copy (20 us, lane 1) that the one
// before has left: copies start at 0, 20, 40. Layer 0 reads the start offset: starts 0, max(5, 0 + 2) = 5,
// max(10, 20 + 2) = 22, max(27, 40 + 2) = 42.
TEST(Slots, LeadFromLayerToLayer) {
  ProgramSketch s;
  BlockSketch layer{"layer", 2};
  const InPortId ready = layer.in();
  const TaskId work = layer.work(0, 5), copy = layer.work(1, 20);
  layer.edge(layer.arrival(ready), work).out(layer.start(copy), 2);
  const BlockInstance instance{.block = s.block(layer), .in_slots = {0}, .out_slots = {0}};
  const RankClassId rank = s.program.add_rank_class({.name = "rank",
                                                     .lanes = streams(2),
                                                     .slot_count = 1,
                                                     .instances = {instance, instance, instance, instance}});
  const Timeline t = simulated(s.program);
  EXPECT_THAT(t.instance(rank, 0, InstanceId{0}), ElementsAre(is(0, 5), is(0, 20)));
  EXPECT_THAT(t.instance(rank, 0, InstanceId{1}), ElementsAre(is(5, 10), is(20, 40)));
  EXPECT_THAT(t.instance(rank, 0, InstanceId{2}), ElementsAre(is(22, 27), is(40, 60)));
  EXPECT_EQ(t.at({.rank_class = rank, .instance = InstanceId{3}, .task = work}).start_us, 42);
  EXPECT_THAT(t.lane_free_us(rank), ElementsAre(47, 80));
}

// Block lanes bound crosswise: the second instance runs its lane 0 on lane 1 of the class, which is free
// from 3.
TEST(Lanes, AreBoundPerInstance) {
  ProgramSketch s;
  BlockSketch b{"two", 2};
  b.work(0, 5);
  b.work(1, 3);
  const BlockId block = s.block(b);
  const RankClassId rank = s.ranks(1, 3, {block});
  s.program.add_instance(rank, {.block = block, .lanes = {1, 2}});
  const Timeline t = simulated(s.program);
  EXPECT_THAT(t.instance(rank, 0, kSecond), ElementsAre(is(3, 8), is(0, 3)));
  EXPECT_THAT(t.lane_free_us(rank), ElementsAre(5, 8, 3));
}

// ---------------------------------------------------------------------------------------------------------
// Scenarios and errors

TEST(Engine, DurationsStandBesideTheProgram) {
  ProgramSketch s;
  BlockSketch b{"block", 2};
  const TaskId launch = b.work(0, 4), kernel = b.work(1, 50);
  b.edge(b.end(launch), kernel, 2);
  const BlockId block = s.block(b);
  s.ranks(1, 2, {block});
  const Plan plan = Plan::compile(s.program).value();
  Costs costs{s.program};
  Timeline t;
  ASSERT_TRUE(plan.simulate(costs, {}, t).ok());
  EXPECT_EQ(t.end_us(), 56);
  costs.duration_us(block)[kernel.index()] = 5;
  costs.delay_us(block)[0] = 1;
  ASSERT_TRUE(plan.simulate(costs, {}, t).ok());  // into the same memory
  EXPECT_EQ(t.end_us(), 10);                      // 4 + 1 + 5
}

TEST(Engine, TimelinesAreValues) {
  ProgramSketch s;
  BlockSketch b{"block", 1};
  b.work(0, 4);
  const RankClassId rank = s.ranks(1, 1, {s.block(b)});
  Timeline t = simulated(s.program);
  const Timeline copy = t;
  Timeline moved = std::move(t);
  EXPECT_THAT(copy.instance(rank, 0, kFirst), ElementsAre(is(0, 4)));
  EXPECT_THAT(moved.instance(rank, 0, kFirst), ElementsAre(is(0, 4)));
  moved = copy;
  EXPECT_EQ(moved.end_us(), 4);
}

TEST(Engine, NothingToDo) {
  EXPECT_EQ(simulated(Program{}).end_us(), 0);
  EXPECT_EQ(Timeline{}.end_us(), 0);
  ProgramSketch s;
  const RankClassId rank = s.ranks(2, 1);
  const Timeline t = simulated(s.program, {.unfold = true, .start_offset_us = {3, 8}});
  EXPECT_EQ(t.rank_end_us(rank, 0), 3);
  EXPECT_EQ(t.end_us(), 8);
}

// Ranks beyond a whole tile of the sweep: 13 = 8 + 4 + 1, each with its own offset.
TEST(Engine, EveryRankHasItsOwnTimes) {
  ProgramSketch s;
  BlockSketch b{"block", 2};
  const TaskId a = b.work(0, 3), c = b.work(1, 4);
  b.edge(b.end(a), c, 1);
  const RankClassId rank = s.ranks(13, 2, {s.block(b)});
  SimulateOptions options{.unfold = true};
  for (int r = 0; r < 13; ++r) options.start_offset_us.push_back(100.0 * r);
  const Timeline t = simulated(s.program, options);
  for (std::uint32_t r = 0; r < 13; ++r) {
    EXPECT_THAT(t.instance(rank, r, kFirst),
                ElementsAre(is(100.0 * r, 100.0 * r + 3), is(100.0 * r + 4, 100.0 * r + 8)));
  }
}

struct ErrorCase : ::testing::Test {
  ErrorCase() {
    BlockSketch b{"block", 1};
    b.work(0, 4);
    block = s.block(b);
    s.ranks(3, 1, {block});
    s.ranks(2, 1, {block});
  }
  std::string error(const SimulateOptions& options) { return error(Costs{s.program}, options); }
  std::string error(const Costs& costs, const SimulateOptions& options = {}) {
    const Plan plan = Plan::compile(s.program).value();
    const Result<Timeline> t = plan.simulate(costs, options);
    return t.ok() ? "no error" : t.error().message();
  }
  ProgramSketch s;
  BlockId block;
};
using EngineErrors = ErrorCase;

TEST_F(EngineErrors, StartOffsets) {
  EXPECT_EQ(error({.start_offset_us = {1, 2}}), "no error");
  EXPECT_EQ(error({.start_offset_us = {1, 2, 3, 4, 5}}),
            "wrong number of start offsets, found 5, expected 2, one for each rank class, or none");
  EXPECT_EQ(error({.unfold = true, .start_offset_us = {1, 2}}),
            "wrong number of start offsets, found 2, expected 5, one for each rank, or none");
  EXPECT_EQ(error({.start_offset_us = {1, std::numeric_limits<double>::quiet_NaN()}}),
            "invalid start offset 1, found nan us, expected a finite time");
}

TEST_F(EngineErrors, Costs) {
  Costs costs{s.program};
  costs.duration_us(block)[0] = -1;
  EXPECT_EQ(error(costs),
            "costs: invalid duration of task 0 of block 0 (\"block\"), found -1 us, expected a finite time "
            "that is not negative");
  EXPECT_EQ(error(Costs{Program{}}), "costs of another program, found 0 blocks, expected 1");
}

// 5 ranks x (1 + 1) intervals x 16 bytes + 5 lanes and offsets x 8 bytes = 240 bytes.
TEST_F(EngineErrors, TooLarge) {
  EXPECT_EQ(error({.unfold = true, .max_timeline_bytes = 240}), "no error");
  EXPECT_EQ(error({.unfold = true, .max_timeline_bytes = 239}),
            "the timeline is too large, found 2.24e-07 GiB for 5 tasks, expected at most 2.23e-07 GiB; fold "
            "equal ranks into one class, or raise max_timeline_bytes");
}

// 256,999 x 2,089 tasks and a start offset are 2^29 intervals a rank; 2^31 ranks of them are 2^64 bytes twice
// over, which may not wrap round to the 32 GiB of the lanes and offsets.
TEST_F(EngineErrors, MoreThanAnyMachineHolds) {
  BlockSketch b{"huge", 1};
  for (int t = 0; t < 256999; ++t) b.work(0, 1);
  const BlockId huge = s.block(b);
  const RankClassId rank = s.ranks(std::uint32_t{1} << 31, 1);
  for (int i = 0; i < 2089; ++i) s.program.add_instance(rank, {.block = huge});
  EXPECT_THAT(error({.unfold = true, .max_timeline_bytes = std::size_t{64} << 30}),
              ::testing::HasSubstr("the timeline is too large"));
}

TEST(EngineErrorsAtCompile, AreThoseOfCheck) {
  ProgramSketch s;
  BlockSketch b{"block", 1};
  b.join(0, 4);
  s.ranks(1, 1, {s.block(b)});
  const Result<Plan> plan = Plan::compile(s.program);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().message(), s.program.check().error().message());
}

TEST(Plan, SaysWhatItHolds) {
  const Joined j{CollectiveKind::all, {10, 30}, {5, 6}};
  const Plan plan = Plan::compile(j.sketch.program).value();
  EXPECT_GT(plan.memory_bytes(), 5 * sizeof(OrderStep));  // two arrivals, one completion, two rests
}

}  // namespace
}  // namespace stepcast::engine_test

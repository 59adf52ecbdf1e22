#include "tests/support/composition.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sketch.h"

namespace stepcast::composition_test {
namespace {

using fixtures::BlockSketch;
using fixtures::ProgramSketch;
using fixtures::simulated;
using fixtures::streams;
using ::testing::ElementsAre;

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr InstanceId kFirst{0};

MaxPlusMatrix matrix(const std::vector<std::vector<double>>& rows) {
  MaxPlusMatrix m{rows.size(), rows.front().size()};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows[i].size(); ++j) m.at(i, j) = rows[i][j];
  }
  return m;
}

// Lane 0: work 5, lane 1: work 3 that waits for the first (+ 2). In-port read by the second (+ 1). Out-port:
// start of the second + 4.
//   lane 0 out  = lane 0 + 5
//   second start = max(lane 1, lane 0 + 5 + 2, in + 1); lane 1 out = that + 3; out-port = that + 4
TEST(BlockMatrix, LanesAndPorts) {
  BlockSketch b{"block", 2};
  const InPortId in = b.in();
  const TaskId first = b.work(0, 5), second = b.work(1, 3);
  b.edge(b.end(first), second, 2).edge(b.arrival(in), second, 1).out(b.start(second), 4);
  const Block block = b.finish();
  EXPECT_EQ(block_matrix(block, block.duration_us(), block.delay_us()), matrix({
                                                                            {5, kNever, kNever},
                                                                            {10, 3, 4},
                                                                            {11, 4, 5},
                                                                        }));
}

// Lane 0: work 5, collective, work 1. Its arrival depends on what is before it, the lane after it on its
// completion alone.
TEST(BlockMatrix, Collectives) {
  BlockSketch b{"block", 2};
  b.work(0, 5);
  b.join(0, 100);
  b.work(0, 1);
  const Block block = b.finish();
  EXPECT_EQ(block_matrix(block, block.duration_us(), block.delay_us()),
            matrix({
                {kNever, kNever, 1},  // lane 0
                {kNever, 0, kNever},  // lane 1: not used
                {5, kNever, kNever},  // arrival
            }));
}

// More columns than one pass computes: 11 lanes in a row, each waits for the one before.
//   lane i out = max over j <= i of lane j + sum of work j .. i = lane j + (i - j + 1)
TEST(BlockMatrix, ManyColumns) {
  constexpr std::uint32_t kLanes = 11;
  BlockSketch b{"chain", kLanes};
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    const TaskId t = b.work(l, 1);
    if (l > 0) b.edge(b.end(TaskId{l - 1}), t);
  }
  const Block block = b.finish();
  const MaxPlusMatrix m = block_matrix(block, block.duration_us(), block.delay_us());
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    for (std::uint32_t j = 0; j < kLanes; ++j) {
      EXPECT_EQ(m.at(i, j), j <= i ? static_cast<double>(i - j + 1) : kNever);
    }
  }
}

// The durations of the scenario, not those of the block.
TEST(BlockMatrix, TakesItsCosts) {
  BlockSketch b{"block", 1};
  b.work(0, 5);
  const Block block = b.finish();
  const std::vector<double> longer{50};
  EXPECT_EQ(block_matrix(block, longer, {}), matrix({{50}}));
}

// Class 0 starts at 2, works 10 and joins at 12; class 1 works 3 and joins at 3: both leave at 12 + 5.
TEST(ComposedProgram, EvaluatesForOffsets) {
  ProgramSketch s;
  std::vector<CollectiveMember> members;
  for (const double work : {10.0, 3.0}) {
    BlockSketch b{"block", 2};
    b.work(0, work);
    const TaskId join = b.join(0, 5);
    members.push_back({s.ranks(4, 2, {s.block(b)}), kFirst, join});
  }
  s.join(CollectiveKind::all, members);
  const ComposedProgram composed = ComposedProgram::compose(s.program, Costs{s.program}).value();
  const ComposedResult late = composed.evaluate({2, 0}).value();
  EXPECT_THAT(late.lane_free_us, ElementsAre(ElementsAre(17, 2), ElementsAre(17, 0)));
  EXPECT_EQ(late.end_us(), 17);
  EXPECT_EQ(composed.evaluate().value().end_us(), 15);
  EXPECT_EQ(composed.evaluate({0, 20}).value().end_us(), 28);  // 20 + 3 + 5
  EXPECT_GT(composed.term_count(), 0u);
  EXPECT_GT(composed.memory_bytes(), 0u);
}

// Four layers whose slot crosses: they read slot 0 and write slot 1; only the last write is seen behind them.
TEST(ComposedProgram, LayersThatReadAndWriteDifferentSlots) {
  ProgramSketch s;
  BlockSketch make{"make", 2}, layer{"layer", 2}, use{"use", 2};
  make.out(make.end(make.work(1, 20)));
  const InPortId in = layer.in();
  const TaskId work = layer.work(0, 5);
  layer.edge(layer.arrival(in), work, 1).out(layer.start(work), 100);
  const InPortId read = use.in();
  use.edge(use.arrival(read), use.work(1, 1));
  const BlockId b_make = s.block(make), b_layer = s.block(layer), b_use = s.block(use);
  const BlockInstance crossing{.block = b_layer, .in_slots = {0}, .out_slots = {1}};
  s.program.add_rank_class({.name = "rank",
                            .lanes = streams(2),
                            .slot_count = 2,
                            .instances = {{.block = b_make, .out_slots = {0}},
                                          crossing,
                                          crossing,
                                          crossing,
                                          crossing,
                                          {.block = b_use, .in_slots = {1}}}});
  // The layer reads 20 + 1 each time; it starts at 21, 26, 31, 36; the slot holds 36 + 100.
  const ComposedResult r = ComposedProgram::compose(s.program, Costs{s.program}).value().evaluate().value();
  EXPECT_THAT(r.lane_free_us, ElementsAre(ElementsAre(41, 137)));
  const Timeline t = simulated(s.program);
  EXPECT_THAT(t.lane_free_us(RankClassId{0}), ElementsAre(41, 137));
}

TEST(ComposedProgram, Errors) {
  ProgramSketch s;
  BlockSketch b{"block", 1};
  b.work(0, 4);
  const BlockId block = s.block(b);
  s.ranks(1, 1, {block});
  const ComposedProgram composed = ComposedProgram::compose(s.program, Costs{s.program}).value();
  EXPECT_EQ(composed.evaluate({1, 2}).error().message(),
            "wrong number of start offsets, found 2, expected 1, one for each rank class, or none");
  EXPECT_EQ(composed.evaluate({kNever}).error().message(),
            "invalid start offset 0, found -inf us, expected a finite time");
  Costs costs{s.program};
  costs.duration_us(block)[0] = -4;
  EXPECT_EQ(ComposedProgram::compose(s.program, costs).error().message(),
            costs.check(s.program).error().message());
  s.program.set_multiplicity(RankClassId{0}, 0);
  EXPECT_EQ(ComposedProgram::compose(s.program, Costs{s.program}).error().message(),
            s.program.check().error().message());
}

TEST(ComposedProgram, NothingToDo) {
  const Program empty;
  EXPECT_EQ(ComposedProgram::compose(empty, Costs{empty}).value().evaluate().value().end_us(), 0);
  EXPECT_EQ(ComposedResult{}.end_us(), 0);
}

}  // namespace
}  // namespace stepcast::composition_test

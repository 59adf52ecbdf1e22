// Small Programs written down in a few lines, for tests whose arithmetic stands beside them.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/program/program.h"
#include "stepcast/simulate/engine.h"

namespace stepcast::fixtures {

// `count` streams.
inline std::vector<Lane> streams(std::uint32_t count) {
  std::vector<Lane> lanes;
  for (std::uint32_t l = 0; l < count; ++l)
    lanes.push_back({LaneKind::gpu_stream, "stream " + std::to_string(l)});
  return lanes;
}

// A block over streams 0, 1, ...: tasks are numbered as they are added, which must be an order in which they
// can run.
class BlockSketch {
 public:
  BlockSketch(std::string name, std::uint32_t lanes) : builder_{std::move(name)} {
    for (Lane& lane : streams(lanes)) builder_.add_lane(std::move(lane));
  }
  TaskId work(std::uint32_t lane, double duration_us) { return task(lane, TaskKind::kernel, duration_us); }
  TaskId join(std::uint32_t lane, double duration_us) {
    return task(lane, TaskKind::collective, duration_us);
  }
  InPortId in() { return builder_.add_in_port("in"); }
  BlockSketch& out(Moment source, double delay_us = 0) {
    builder_.add_out_port("out", source, Microseconds{delay_us});
    return *this;
  }
  BlockSketch& edge(Moment from, TaskId to, double delay_us = 0) {
    builder_.add_edge(from, to, Microseconds{delay_us}, {});
    return *this;
  }
  Block finish() {
    Result<Block> block = std::move(builder_).finish();
    EXPECT_TRUE(block.ok()) << block.error().message();
    return std::move(block).value();
  }
  static Moment start(TaskId t) { return Moment::start_of(t); }
  static Moment end(TaskId t) { return Moment::end_of(t); }
  static Moment arrival(InPortId p) { return BlockBuilder::arrival_at(p); }

 private:
  TaskId task(std::uint32_t lane, TaskKind kind, double duration_us) {
    return builder_.add_task(LaneId{lane}, {.kind = kind}, Microseconds{duration_us});
  }
  BlockBuilder builder_;
};

class ProgramSketch {
 public:
  BlockId block(BlockSketch& sketch) { return program.add_block(sketch.finish()); }
  // A class that runs `blocks` in order on streams and slots of the same numbers.
  RankClassId ranks(std::uint32_t multiplicity, std::uint32_t lanes,
                    std::initializer_list<BlockId> blocks = {}) {
    RankClass rank_class;
    rank_class.name = "class " + std::to_string(program.rank_classes().size());
    rank_class.multiplicity = multiplicity;
    rank_class.lanes = streams(lanes);
    const RankClassId id = program.add_rank_class(std::move(rank_class));
    for (const BlockId b : blocks) program.add_instance(id, {.block = b});
    return id;
  }
  CollectiveId join(CollectiveKind kind, std::vector<CollectiveMember> members, std::uint32_t root = 0,
                    CollectiveGrouping grouping = CollectiveGrouping::spanning) {
    Collective collective;
    collective.kind = kind;
    collective.grouping = grouping;
    collective.root = root;
    collective.members = std::move(members);
    return program.add_collective(std::move(collective));
  }
  Program program;
};

// Times of a Program with the durations of its blocks.
inline Timeline simulated(const Program& program, const SimulateOptions& options = {}) {
  Result<Plan> plan = Plan::compile(program);
  EXPECT_TRUE(plan.ok()) << plan.error().message();
  Result<Timeline> timeline = plan->simulate(Costs{program}, options);
  EXPECT_TRUE(timeline.ok()) << timeline.error().message();
  return std::move(timeline).value();
}

}  // namespace stepcast::fixtures

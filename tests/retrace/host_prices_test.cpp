#include "stepcast/retrace/host_prices.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::host_prices_test {
namespace {

using literals::operator""_us;
using ::testing::ElementsAre;

// A thread of one rank, written down task by task.
class HostThread {
 public:
  explicit HostThread(RecordedProgram& recorded) : recorded_(recorded), block_("rank") {
    lane_ = block_.add_lane({LaneKind::cpu_thread, "main"});
  }
  void gap(double us) { add(OverheadType::t1, {}, us); }
  void call(const std::string& name, double us) { add(OverheadType::t4, name, us); }
  // The next tasks belong to another call of the operator.
  void enter(const std::string& op) { stack_ = recorded_.program.stacks.push(StackId{}, name(op)); }
  void leave() { stack_ = StackId{}; }
  void add(OverheadType type, const std::string& op, double us) {
    block_.add_task(lane_,
                    {.kind = type == OverheadType::t4 ? TaskKind::cpu_call : TaskKind::cpu_segment,
                     .stack = stack_,
                     .work = recorded_.program.works.intern(
                         HostWork{.type = type, .op = op.empty() ? NameId{} : name(op)})},
                    Microseconds{us});
  }
  RankClassId finish() {
    Result<Block> block = std::move(block_).finish();
    if (!block.ok()) throw std::runtime_error(block.error().message());
    const BlockId id = recorded_.program.add_block(std::move(*block));
    RankClass ranks;
    ranks.lanes = {{LaneKind::cpu_thread, "main"}};
    const RankClassId c = recorded_.program.add_rank_class(std::move(ranks));
    recorded_.program.add_instance(c, {.block = id});
    return c;
  }

 private:
  NameId name(const std::string& text) { return recorded_.program.names.intern(text); }
  RecordedProgram& recorded_;
  BlockBuilder block_;
  LaneId lane_;
  StackId stack_{};
};

// gap 2 | mm: 3 + 1, launch 4, 5 | gap 6 | view: 7
RankClassId first_rank(RecordedProgram& recorded) {
  HostThread thread{recorded};
  thread.gap(2);
  thread.enter("aten::mm");
  thread.add(OverheadType::t2, "aten::mm", 3);
  thread.add(OverheadType::t2, "aten::mm", 1);
  thread.call("cudaLaunchKernel", 4);
  thread.add(OverheadType::t3, "aten::mm", 5);
  thread.leave();
  thread.gap(6);
  thread.enter("aten::view");
  thread.add(OverheadType::t5, "aten::view", 7);
  return thread.finish();
}

std::vector<double> durations(const RecordedProgram& recorded, const Costs& costs, RankClassId c) {
  const std::span<const double> us =
      costs.duration_us(recorded.program.rank_class(c).instances.front().block);
  return {us.begin(), us.end()};
}

TEST(HostOverheadsOfAPlatform, AreApplied) {
  RecordedProgram recorded;
  const RankClassId first = first_rank(recorded);
  Platform platform;
  platform.set(OverheadRecord{.type = OverheadType::t2,
                              .op = "aten::mm",
                              .mean_us = 20,
                              .std_us = {},
                              .p10_us = {},
                              .p50_us = {},
                              .p90_us = {},
                              .n = 1,
                              .provenance = {}});
  const Result<HostOverheads> overheads = HostOverheads::of(platform);
  ASSERT_TRUE(overheads.ok()) << overheads.error().message();
  Costs costs{recorded.program};
  (void)apply_host_overheads(*overheads, recorded, first, costs);
  EXPECT_THAT(durations(recorded, costs, first), ElementsAre(2, 20, 20, 4, 5, 6, 7))
      << "only T2 is known, of which each task stands for one";
  Costs half{recorded.program};
  (void)apply_host_overheads(*overheads, recorded, first, half, {.in_ops = 0.5});
  EXPECT_THAT(durations(recorded, half, first), ElementsAre(2, 10, 10, 4, 5, 6, 7));
  Costs slower{recorded.program};
  scale_host_time(recorded, first, slower, 3);
  EXPECT_THAT(durations(recorded, slower, first), ElementsAre(6, 9, 3, 12, 15, 18, 21)) << "each by itself";
}

}  // namespace
}  // namespace stepcast::host_prices_test

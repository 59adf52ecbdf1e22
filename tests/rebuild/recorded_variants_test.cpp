#include "stepcast/rebuild/recorded_variants.h"

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/trace_generator.h"

namespace stepcast::recorded_variants_test {
namespace {

RecordedProgram generated() {
  const test::GeneratedJob job = test::generate_job({});
  std::vector<RecordedInput> inputs;
  for (const test::GeneratedRank& rank : job.ranks) inputs.push_back({&rank.recorded, nullptr});
  auto recorded = rebuild_program(inputs);
  EXPECT_TRUE(recorded.ok()) << recorded.error().message();
  return *std::move(recorded);
}

TEST(SmallestHandoffs, StandOnEveryHandoffAndNothingElseChanges) {
  const RecordedProgram recorded = generated();
  const Costs costs = SmallestHandoffs{recorded}.costs(recorded.program);
  std::map<DelayKind, std::vector<double>> as_recorded, replaced;
  for (std::size_t b = 0; b < recorded.program.blocks().size(); ++b) {
    const Block& block = recorded.program.blocks()[b];
    for (std::size_t t = 0; t < block.task_count(); ++t)
      EXPECT_EQ(costs.duration_us(BlockId{b})[t], block.duration_us()[t]);
    for (std::size_t e = 0; e < block.edge_count(); ++e) {
      const EdgeInfo& info = block.edge_infos()[e];
      const double now = costs.delay_us(BlockId{b})[e];
      if (info.origin != EdgeOrigin::thread_handoff) {
        EXPECT_EQ(now, block.delay_us()[e]);
        continue;
      }
      const DelayKind kind = recorded.delays.of(info.delay).kind;
      as_recorded[kind].push_back(block.delay_us()[e]);
      replaced[kind].push_back(now);
    }
  }
  ASSERT_FALSE(as_recorded.empty());
  for (const auto& [kind, delays] : as_recorded) {
    const double smallest = *std::min_element(delays.begin(), delays.end());
    EXPECT_EQ(replaced[kind], std::vector<double>(delays.size(), smallest));
  }
}

TEST(WithoutGpuDependencies, KeepsTasksAndTheOrderOfStreams) {
  const RecordedProgram recorded = generated();
  for (std::size_t c = 0; c < recorded.facts.size(); ++c) {
    const Result<RecordedProgram> naive = without_gpu_dependencies(recorded, RankClassId{c});
    ASSERT_TRUE(naive.ok()) << naive.error().message();
    EXPECT_TRUE(naive->program.check().ok());
    EXPECT_TRUE(naive->program.collectives().empty());
    const Block& before = recorded.program.block_of(RankClassId{c}, InstanceId{0});
    const Block& after = naive->program.block_of(RankClassId{0}, InstanceId{0});
    ASSERT_EQ(after.task_count(), before.task_count());
    for (std::size_t t = 0; t < before.task_count(); ++t) {
      EXPECT_EQ(after.tasks()[t].recorded_event, before.tasks()[t].recorded_event);
      EXPECT_EQ(after.lane_codes()[t], before.lane_codes()[t]);
      // Each rank's collective has its own recorded length, waiting included.
      if (before.tasks()[t].kind == TaskKind::collective) {
        EXPECT_EQ(after.duration_us()[t], recorded.measured[c][t].length_us());
      }
    }
    std::vector<EdgeOrigin> left;
    for (const EdgeInfo& info : before.edge_infos()) {
      if (info.origin == EdgeOrigin::launch || info.origin == EdgeOrigin::stream_order ||
          info.origin == EdgeOrigin::recorded_offset || info.origin == EdgeOrigin::thread_handoff) {
        left.push_back(info.origin);
      }
    }
    std::vector<EdgeOrigin> found;
    for (const EdgeInfo& info : after.edge_infos()) found.push_back(info.origin);
    EXPECT_EQ(found, left);
  }
}

}  // namespace
}  // namespace stepcast::recorded_variants_test

// How much the time of kernels matters for a recorded step: nothing where the host holds it back, all where the GPU
// does.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/predict/replay.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/sources/trace_set.h"

#include "tests/support/data.h"

namespace stepcast::kernel_sensitivity_test {
namespace {

RecordedProgram last_step(const std::filesystem::path& place, std::int64_t step) {
  const std::vector<std::filesystem::path> places{place};
  const Result<TraceListing> listing = list_traces(places);
  if (!listing.ok()) throw std::runtime_error(listing.error().message());
  std::vector<TraceListing::Other> others;
  const std::vector<TraceSet> sets = read_trace_sets(*listing, {.ranks = {}, .threads = 0}, others);
  Result<RecordedProgram> program =
      rebuild_program(sets.at(0).inputs(), {.step = step, .own_delays = false, .tf32_allowed = false});
  if (!program.ok()) throw std::runtime_error(program.error().message());
  return std::move(*program);
}

// Longest step with all kernels that are no collectives at `factor` times their recorded length.
double step_us(const RecordedProgram& recorded, double factor) {
  Costs costs{recorded.program};
  for (std::size_t b = 0; b < recorded.program.blocks().size(); ++b) {
    const Block& block = recorded.program.block(BlockId{b});
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      if (block.tasks()[t].kind == TaskKind::kernel) costs.duration_us(BlockId{b})[t] *= factor;
    }
  }
  const Result<ReplayScores> scores = score_replay(recorded, costs);
  double longest = 0;
  for (const ReplayedRank& rank : scores->ranks) longest = std::max(longest, rank.step.simulated_us);
  return longest;
}

TEST(KernelTimes, DoNotMatterToAStepThatTheHostHoldsBack) {
  SKIP_WITHOUT_DATA();
  const RecordedProgram dlrm = last_step(*test::measured_data() / "traces/dlrm8", 10);
  const double as_recorded = step_us(dlrm, 1);
  EXPECT_NEAR(step_us(dlrm, 0), as_recorded, 0.01 * as_recorded);
  EXPECT_NEAR(step_us(dlrm, 5), as_recorded, 0.01 * as_recorded);
}

// ResNet-50, step 10: 164 ms, whose kernels take 98, one after the other on one stream, while the CPU runs ahead; those
// that the step before had left count to that one. At five times their length the GPU holds the job back: 5 x 98 ms. At
// no length, and at a tenth more, the CPU does.
TEST(KernelTimes, MakeAStepThatTheGpuHoldsBack) {
  SKIP_WITHOUT_DATA();
  const RecordedProgram resnet =
      last_step(*test::measured_data() / "traces/kineto_w0/worker0.1623143089861.pt.trace.json.gz", 10);
  double kernels_us = 0;
  const Block& block = resnet.program.blocks().front();
  const std::vector<bool> left_over = left_over_tasks(block);
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    if (block.tasks()[t].kind == TaskKind::kernel && !left_over[t]) kernels_us += block.duration_us()[t];
  }
  ASSERT_GT(kernels_us, 95e3);
  const auto with_kernels = [&](double factor) {
    TracePredictionOptions how;
    how.assumptions.gemm_factor = how.assumptions.attention_factor = how.assumptions.memory_bound_factor =
        factor;
    const Result<TracePrediction> prediction = predict_recorded(resnet, how);
    EXPECT_TRUE(prediction.ok());
    return prediction->step.time.value();
  };
  const double as_recorded = with_kernels(1);
  EXPECT_NEAR(as_recorded, resnet.facts.front().step_us.length_us(), 0.01 * as_recorded);
  // Copies and fills come on top of the kernels of the stream.
  EXPECT_NEAR(with_kernels(5), 5 * kernels_us, 0.05 * 5 * kernels_us);
  EXPECT_NEAR(with_kernels(1.1), as_recorded, 0.01 * as_recorded);
  EXPECT_LE(with_kernels(1e-3), as_recorded);
}

}  // namespace
}  // namespace stepcast::kernel_sensitivity_test

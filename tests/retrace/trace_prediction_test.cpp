#include "stepcast/retrace/trace_prediction.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"

#include "tests/support/trace_generator.h"

namespace stepcast::trace_prediction_test {
namespace {

using ::testing::HasSubstr;

class GeneratedTraces {
 public:
  explicit GeneratedTraces(const test::GeneratorOptions& options) : job_(test::generate_job(options)) {
    for (const test::GeneratedRank& rank : job_.ranks) inputs_.push_back({&rank.recorded, nullptr});
  }
  [[nodiscard]] const std::vector<RecordedInput>& inputs() const { return inputs_; }
  [[nodiscard]] double step_us(const TracePredictionOptions& how = {}) const {
    const Result<TracePrediction> p = predict_trace(inputs_, how);
    EXPECT_TRUE(p.ok()) << p.error().message();
    return p.ok() ? p->step.time.value() : 0;
  }

 private:
  test::GeneratedJob job_;
  std::vector<RecordedInput> inputs_;
};

TEST(PredictTrace, WithoutChangesIsTheReplay) {
  const GeneratedTraces traces{test::GeneratorOptions{}};
  const Result<TracePrediction> p = predict_trace(traces.inputs(), {});
  ASSERT_TRUE(p.ok()) << p.error().message();
  const Result<Replay> r = replay(traces.inputs());
  ASSERT_TRUE(r.ok()) << r.error().message();
  ASSERT_EQ(p->ranks.size(), r->ranks.size());
  double longest = 0;
  for (std::size_t c = 0; c < p->ranks.size(); ++c) {
    EXPECT_EQ(p->ranks[c].step.simulated_us, r->ranks[c].step.simulated_us);
    longest = std::max(longest, r->ranks[c].step.simulated_us);
  }
  EXPECT_EQ(p->step.time.value(), longest);
  EXPECT_EQ(p->step.source, EstimateSource::measured);
  EXPECT_LT(p->step.p10, p->step.time);
  EXPECT_GT(p->step.p90, p->step.time);
}

// Nobody measured a step with another host, another overlap or without stragglers.
TEST(PredictTrace, AChangedStepIsNotMeasured) {
  const GeneratedTraces traces{test::GeneratorOptions{}};
  TracePredictionOptions host, gemm, overlap, ranks;
  host.assumptions.host_factor = 0.5;
  gemm.assumptions.gemm_factor = 0.5;
  overlap.overlap = OverlapChange::none;
  ranks.median_ranks = true;
  for (const TracePredictionOptions& how : {host, gemm, overlap, ranks}) {
    const Result<TracePrediction> p = predict_trace(traces.inputs(), how);
    ASSERT_TRUE(p.ok()) << p.error().message();
    EXPECT_EQ(p->step.source, EstimateSource::assumed);
  }
}

// A job whose kernels take ten times as long waits for the GPU, one with the plain ones for its host: each
// speeds up with what it waits for and hardly with the other.
TEST(PredictTrace, SpeedsUpWithWhatTheJobWaitsFor) {
  TracePredictionOptions fast_host, fast_gpu;
  fast_host.assumptions.host_factor = 0.5;
  fast_gpu.assumptions.gemm_factor = fast_gpu.assumptions.memory_bound_factor =
      fast_gpu.assumptions.communication_factor = 0.5;
  const GeneratedTraces host_bound{test::GeneratorOptions{}};
  const double recorded = host_bound.step_us();
  EXPECT_LT(host_bound.step_us(fast_host), 0.85 * recorded);
  EXPECT_GT(host_bound.step_us(fast_gpu), host_bound.step_us(fast_host));

  test::GeneratorOptions slow_kernels;
  slow_kernels.kernel_scale = 10;
  const GeneratedTraces gpu_bound{slow_kernels};
  const double long_step = gpu_bound.step_us();
  EXPECT_LT(gpu_bound.step_us(fast_gpu), 0.65 * long_step);
  EXPECT_GT(gpu_bound.step_us(fast_host), 0.85 * long_step);
}

// The recorded step was recorded with its profiler, so only what is changed of it may run without one.
TEST(PredictTrace, TheRecordedStepHasANarrowBand) {
  const Result<TracePrediction> p = predict_trace(GeneratedTraces{test::GeneratorOptions{}}.inputs(), {});
  ASSERT_TRUE(p.ok()) << p.error().message();
  EXPECT_GT(p->step.p10.value(), 0.97 * p->step.time.value());
  EXPECT_LE(p->step.p10.value(), p->base.measured_us);
  EXPECT_GE(p->step.p90.value(), p->base.measured_us);
  EXPECT_THAT(p->notes, ::testing::Contains(HasSubstr("profilers slow the host")));
}

// The first 600 us of a rank in which nothing is known to happen: the replay cannot tell what they were.
RecordedProgram replayed_too_short(double unexplained_us) {
  const test::GeneratedJob job = test::generate_job({.ranks = 1});
  std::vector<RecordedInput> inputs{{&job.ranks.front().recorded, nullptr}};
  Result<RecordedProgram> recorded = rebuild_program(inputs);
  EXPECT_TRUE(recorded.ok());
  recorded->facts.front().step_us.end_us += unexplained_us;
  return std::move(*recorded);
}

TEST(PredictTrace, TheBandIsAtLeastAsWideAsTheReplayIsOff) {
  const double length_us = replayed_too_short(0).facts.front().step_us.length_us();
  const Result<TracePrediction> p = predict_recorded(replayed_too_short(0.2 * length_us), {});
  ASSERT_TRUE(p.ok()) << p.error().message();
  EXPECT_NEAR(p->base.error(), -1.0 / 6, 0.01);
  EXPECT_GE(p->step.p90.value(), p->base.measured_us);
  EXPECT_NE(p->step.source, EstimateSource::measured);
  ASSERT_TRUE(p->base.warning);
  EXPECT_THAT(*p->base.warning, HasSubstr("differ much"));
  TracePredictionOptions faster;
  faster.assumptions.host_factor = 0.5;
  const Result<TracePrediction> changed = predict_recorded(replayed_too_short(0.2 * length_us), faster);
  ASSERT_TRUE(changed.ok()) << changed.error().message();
  EXPECT_GE(changed->step.p90.value(), 1.19 * changed->step.time.value());
}

TEST(PredictTrace, NothingIsChangedOfAStepWhoseReplayIsFarOff) {
  const double length_us = replayed_too_short(0).facts.front().step_us.length_us();
  TracePredictionOptions faster;
  faster.assumptions.host_factor = 0.5;
  const Result<TracePrediction> p = predict_recorded(replayed_too_short(length_us), faster);
  ASSERT_FALSE(p.ok());
  EXPECT_THAT(p.error().message(), HasSubstr("differs too much from the record to predict changes"));
  const Result<TracePrediction> unchanged = predict_recorded(replayed_too_short(length_us), {});
  ASSERT_TRUE(unchanged.ok()) << unchanged.error().message();
  EXPECT_GE(unchanged->step.p90.value(), unchanged->base.measured_us);
}

// A profiler slows the host: the band of a step that the host decides reaches down to what it may take without one.
TEST(PredictTrace, ABandAllowsForWhatAProfilerCosts) {
  TracePredictionOptions faster;
  faster.assumptions.gemm_factor = 0.99;
  const Result<TracePrediction> host_bound =
      predict_trace(GeneratedTraces{test::GeneratorOptions{}}.inputs(), faster);
  ASSERT_TRUE(host_bound.ok()) << host_bound.error().message();
  EXPECT_LT(host_bound->step.p10.value(), 0.8 * host_bound->step.time.value());
  EXPECT_LT(host_bound->step.p90.value(), 1.02 * host_bound->step.time.value());
  EXPECT_THAT(host_bound->notes, ::testing::Contains(HasSubstr("profilers slow the host")));

  test::GeneratorOptions slow_kernels;
  slow_kernels.kernel_scale = 300;
  const Result<TracePrediction> gpu_bound = predict_trace(GeneratedTraces{slow_kernels}.inputs(), {});
  ASSERT_TRUE(gpu_bound.ok()) << gpu_bound.error().message();
  EXPECT_GT(gpu_bound->step.p10.value(), 0.98 * gpu_bound->step.time.value());
  EXPECT_THAT(gpu_bound->notes, ::testing::Not(::testing::Contains(HasSubstr("profilers slow the host"))));
}

// Rank 3 loads its batches for 3 ms longer than the others: without stragglers nobody waits for it.
TEST(PredictTrace, WithoutStragglers) {
  test::GeneratorOptions options;
  options.loader_us = {300, 300, 300, 3300};
  options.start_skew_us = 0;
  options.late_gpu_ranks = {};
  const GeneratedTraces traces{options};
  TracePredictionOptions level;
  level.median_ranks = true;
  const double recorded = traces.step_us();
  EXPECT_LT(traces.step_us(level), recorded - 1000);
}

// Behind a barrier the ranks of a job that began apart take what they take where they begin together.
TEST(PredictTrace, BehindABarrier) {
  test::GeneratorOptions options;
  options.late_gpu_ranks = {};
  options.start_skew_us = 0;
  const double together = GeneratedTraces{options}.step_us();
  options.start_skew_us = 2000;
  const GeneratedTraces apart{options};
  TracePredictionOptions how;
  how.barrier = true;
  EXPECT_GT(apart.step_us(), 1.05 * together);
  EXPECT_NEAR(apart.step_us(how), together, 0.01 * together);
}

TEST(PredictTrace, SaysWhatIsMissing) {
  const GeneratedTraces traces{test::GeneratorOptions{}};
  TracePredictionOptions how;
  how.host = HostTimeSource::overheads;
  Result<TracePrediction> p = predict_trace(traces.inputs(), how);
  ASSERT_FALSE(p.ok());
  EXPECT_THAT(p.error().message(), HasSubstr("host overheads need a platform"));
  Result<Platform> mi300x = load_platform("8xmi300x");
  ASSERT_TRUE(mi300x.ok()) << mi300x.error().message();
  mi300x->overheads = {};
  how.platform = &*mi300x;
  p = predict_trace(traces.inputs(), how);
  ASSERT_FALSE(p.ok());
  EXPECT_THAT(p.error().message(), HasSubstr("platform 8xmi300x has no host overheads"));
}

TEST(PredictTrace, NamesTheHostThatItDoesNotKnow) {
  const GeneratedTraces traces{test::GeneratorOptions{}};
  const Result<Platform> v100 = load_platform("dgx-1-v100-32gb"), a100 = load_platform("dgx-a100");
  ASSERT_TRUE(v100.ok() && a100.ok());
  TracePredictionOptions how;
  how.platform = &*a100;
  how.recorded_on = &*v100;
  how.kernels = KernelTimeSource::ratio;
  const Result<TracePrediction> p = predict_trace(traces.inputs(), how);
  ASSERT_TRUE(p.ok()) << p.error().message();
  EXPECT_THAT(p->notes, ::testing::Contains(
                            HasSubstr("the host of dgx-a100 is assumed to be as fast as the recorded one")));
  EXPECT_LT(p->step.p10.value(), 0.9 * p->step.time.value()) << "a host that nobody measured";
}

}  // namespace
}  // namespace stepcast::trace_prediction_test

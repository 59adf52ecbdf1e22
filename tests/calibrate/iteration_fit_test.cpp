#include "calibrate/iteration_fit.h"

#include <cmath>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/describe/software_defaults.h"
#include "stepcast/formats/presets.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/step_model.h"

#include "tests/support/fails_with.h"

namespace stepcast::iteration_fit_test {
namespace {

const Platform& platform() {
  static const Platform kPlatform = [] {
    Result<Platform> loaded = load_platform("dgx-h100");
    if (!loaded.ok()) throw std::runtime_error(loaded.error().message());
    return std::move(*loaded);
  }();
  return kPlatform;
}

// Steps of a machine whose products take `gemm` times and whose transfers take `communication` times as long
// as forecast.
std::vector<MeasuredStep> machine(double gemm, double communication) {
  StepAssumptions truth;
  truth.gemm_factor = gemm;
  truth.communication_factor = communication;
  StepModel steps{platform(), truth};
  std::vector<MeasuredStep> measured;
  for (const char* name : {"llama-3-8b", "llama-2-13b", "llama-3-70b"}) {
    for (const std::int64_t tensor : {1, 2, 4, 8}) {
      MeasuredStep step;
      auto model = find_preset(name);
      if (!model.ok()) throw std::runtime_error(model.error().message());
      step.model = *model;
      step.layout.degrees.tensor = tensor;
      step.layout.layer.sequence_parallel = tensor > 1;
      step.layout.degrees.data = 64 / tensor;
      step.layout.batch.global_batch_sequences = 128;
      step.layout.batch.seq_len_tokens = 4096;
      step.layout.sharding.kind = Sharding::zero1;
      set_software_defaults(step.layout, Framework::megatron, DType::bf16);
      step.platform = &platform();
      const auto p = steps.predict(step.model, step.layout);
      if (!p.ok()) throw std::runtime_error(p.error().message());
      step.step_time_ms = p->step.time.value() / 1e3;
      measured.push_back(std::move(step));
    }
  }
  return measured;
}

TEST(FitIterations, FindsTheFactorsOfAMachine) {
  const auto steps = machine(1.12, 1.3);
  const auto fit = fit_iterations(steps);
  ASSERT_TRUE(fit.ok());
  EXPECT_EQ(fit->n, steps.size());
  EXPECT_NEAR(fit->assumptions.gemm_factor, 1.12, 0.03);
  EXPECT_NEAR(fit->assumptions.communication_factor, 1.3, 0.1);
  EXPECT_GT(fit->mape_before, 8);
  EXPECT_LT(fit->mape_after, 1.5);
}

TEST(FitIterations, MovesNothingWhereTheForecastIsRight) {
  const auto fit = fit_iterations(machine(1, 1));
  ASSERT_TRUE(fit.ok());
  for (const FittedFactor& f : fitted_factors()) {
    EXPECT_NEAR(fit->assumptions.*(f.member), 1, 0.01) << f.name;
  }
}

// One step of a GPU whose kernels nobody measured: they all err together, and it says by how much. Single kinds of
// kernels it cannot tell apart.
TEST(FitIterations, OneStepMovesTheCommonFactorOfUnmeasuredKernels) {
  Platform bare = platform();
  bare.models.clear();
  StepAssumptions truth;
  truth.unmeasured_kernels_factor = 1.4;
  StepModel steps{bare, truth};
  std::vector<MeasuredStep> measured = machine(1, 1);
  measured.resize(1);
  measured[0].platform = &bare;
  measured[0].step_time_ms = steps.predict(measured[0].model, measured[0].layout)->step.time.value() / 1e3;
  const auto fit = fit_iterations(measured);
  ASSERT_TRUE(fit.ok());
  EXPECT_NEAR(fit->assumptions.unmeasured_kernels_factor, 1.4, 0.05);
  EXPECT_THAT(fit->undetermined, ::testing::Contains("attention_factor"));
  EXPECT_THAT(fit->undetermined, ::testing::Contains("fp8_gemm_factor"));
  EXPECT_LT(fit->mape_after, 2);
}

// Steps in bf16 say nothing of fp8.
TEST(FitIterations, NamesWhatTheStepsCannotTell) {
  const auto fit = fit_iterations(machine(1.1, 1));
  ASSERT_TRUE(fit.ok());
  EXPECT_THAT(fit->undetermined, ::testing::Contains("fp8_gemm_factor"));
  EXPECT_EQ(fit->assumptions.fp8_gemm_factor, 1);
}

// Two of twelve runs took twice as long as they should: the factors stay where the others put them.
TEST(FitIterations, StragglersDoNotDragIt) {
  auto steps = machine(1.1, 1);
  steps[1].step_time_ms *= 2;
  steps[6].step_time_ms *= 2;
  const auto fit = fit_iterations(steps);
  ASSERT_TRUE(fit.ok());
  EXPECT_NEAR(fit->assumptions.gemm_factor, 1.1, 0.05);
  EXPECT_LT(fit->median_after, 2);
}

TEST(FitIterations, NeedsAStepThatCanBePredicted) {
  auto steps = machine(1, 1);
  steps.resize(1);
  steps[0].layout.degrees.tensor = 7;
  const auto fit = fit_iterations(steps);
  ASSERT_FALSE(fit.ok());
  EXPECT_THAT(fit.error().message(), ::testing::HasSubstr("no step can be predicted"));
  EXPECT_THAT(fit_iterations({}), test::FailsWith("there is no measured step"));
}

// What calibrate writes is what the model of that platform reads.
TEST(FitIterations, RecordOfAPlatformGivesTheSameSteps) {
  const auto steps = machine(1.12, 1.3);
  const auto fit = fit_iterations(steps);
  ASSERT_TRUE(fit.ok());
  Platform with_record = platform();
  with_record.set(step_factors_record(fit->assumptions));
  StepModel by_record{with_record}, by_assumptions{platform(), fit->assumptions};
  const auto a = by_record.predict(steps[0].model, steps[0].layout);
  const auto b = by_assumptions.predict(steps[0].model, steps[0].layout);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NEAR(a->step.time / b->step.time, 1, 1e-12);
}

}  // namespace
}  // namespace stepcast::iteration_fit_test

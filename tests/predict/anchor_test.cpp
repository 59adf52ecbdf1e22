#include "stepcast/predict/anchor.h"

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"

#include "tests/support/fails_with.h"

namespace stepcast::anchor_test {
namespace {

using test::FailsWith;

const Platform& platform() {
  static const Platform kPlatform = [] {
    Result<Platform> loaded = load_platform("dgx-h100");
    if (!loaded.ok()) throw std::runtime_error(loaded.error().message());
    return std::move(*loaded);
  }();
  return kPlatform;
}

Transformer gpt(std::int64_t layers = 16) {
  return {.name = "gpt",
          .n_layers = layers,
          .hidden_size = 4096,
          .ffn_hidden_size = 16384,
          .n_heads = 32,
          .vocab_size = 51200,
          .max_position = 2048};
}

Layout layout_of(std::int64_t tp, std::int64_t pp, std::int64_t dp) {
  return {.degrees = {.tensor = tp, .pipeline = pp, .data = dp},
          .batch = {.micro_batch_sequences = 1, .global_batch_sequences = 16 * dp, .seq_len_tokens = 2048}};
}

double step_ms(const StepModel& steps, const Transformer& model, const Layout& layout) {
  const Result<StepPrediction> p = steps.predict(model, layout);
  EXPECT_TRUE(p.ok()) << p.error().message();
  return p.ok() ? p->step.time.value() * 1e-3 : 0;
}

// All computation, of some place and model.
AnchorTraits computing(double place = 0, double band = 0) {
  AnchorTraits traits;
  traits.place[0] = place;
  traits.log_fast = traits.log_slow = band;
  return traits;
}

// By hand, for a step that is asked for as it was measured: with the variances 0.05^2 + 0.08^2 + 0.07^2 of what both have in
// common and 0.035^2 of a run, at the scales 1/4, 1 and 4 (weights 0.35, 0.4, 0.25), each with 0.35^2 of a shared error (0.3) and
// without (0.7), the mean of covariance / variance x error, weighted by the likelihood of the error.
TEST(Anchor, ShrinksWhatWasMeasuredAsWorkedOutByHand) {
  const Anchor tenth{{computing()}, {0.1}};
  EXPECT_NEAR(tenth.at(computing()).log_factor, 0.0931698266, 1e-9);
  EXPECT_NEAR(tenth.at(computing()).log_sd, 0.0567534465, 1e-9);
  const Anchor half{{computing()}, {0.5}};
  EXPECT_NEAR(half.at(computing()).log_factor, 0.4867125293, 1e-9);
}

// What the parts explain and what is left to the run sum to what was measured.
TEST(Anchor, ExplainsAllOfAMeasuredStep) {
  AnchorTraits mixed;
  mixed.compute = 0.7;
  mixed.communication = 0.2;
  mixed.host = 0.1;
  const Anchor anchor{{mixed, computing(2)}, {0.2, -0.05}};
  const AnchoredStep said = anchor.at(mixed);
  EXPECT_NEAR(said.log_factor, said.alike + 0.7 * said.compute + 0.2 * said.communication + 0.1 * said.host,
              1e-12);
  EXPECT_NEAR(said.log_factor + anchor.left(0), 0.2, 1e-12);
}

// Measured as forecast: no part changes, and the band only gets narrower.
TEST(Anchor, OnTheForecastItselfChangesTheBandAlone) {
  const StepModel steps{platform()};
  const double before = step_ms(steps, gpt(), layout_of(4, 2, 4));
  const std::vector<MeasuredTime> measured{{gpt(), layout_of(4, 2, 4), before}};
  const Result<Anchor> anchor = Anchor::of(steps, measured);
  ASSERT_TRUE(anchor.ok());
  for (const Layout& asked : {layout_of(4, 2, 4), layout_of(2, 2, 16), layout_of(8, 1, 64)}) {
    const Result<StepAssumptions> there = anchor->assumptions(steps, gpt(), asked);
    ASSERT_TRUE(there.ok());
    const Result<StepPrediction> with = steps.with(*there).predict(gpt(), asked),
                                 without = steps.predict(gpt(), asked);
    EXPECT_NEAR(with->step.time / without->step.time, 1, 1e-9);
    EXPECT_LE(with->step.p90 / with->step.p10, without->step.p90 / without->step.p10 * (1 + 1e-9));
  }
}

// The anchored forecast is the forecast times the factor, and bands hold the standard deviation.
TEST(Anchor, GivesAssumptionsOfItsFactor) {
  const StepModel steps{platform()};
  const std::vector<MeasuredTime> measured{
      {gpt(), layout_of(4, 2, 4), 1.3 * step_ms(steps, gpt(), layout_of(4, 2, 4))}};
  const Result<Anchor> anchor = Anchor::of(steps, measured);
  ASSERT_TRUE(anchor.ok());
  for (const Layout& asked : {layout_of(4, 2, 4), layout_of(1, 4, 32), layout_of(8, 1, 64)}) {
    const Result<StepPrediction> before = steps.predict(gpt(), asked);
    const AnchoredStep said = anchor->at(traits_of(gpt(), asked, *before));
    EXPECT_GT(said.factor(), 1);
    EXPECT_LT(said.factor(), 1.3);
    const Result<StepAssumptions> there = anchor->assumptions(steps, gpt(), asked);
    ASSERT_TRUE(there.ok());
    const Result<StepPrediction> after = steps.with(*there).predict(gpt(), asked);
    EXPECT_NEAR(after->step.time / before->step.time, said.factor(), 1e-7);
    EXPECT_NEAR(std::log(after->step.p90 / after->step.p10), 2 * 1.2815515655446004 * said.log_sd, 1e-6);
  }
}

TEST(Anchor, SlowedTimesAreSoManyTimesAsLong) {
  const StepModel steps{platform()};
  for (const Layout& asked : {layout_of(1, 1, 8), layout_of(4, 2, 4), layout_of(8, 4, 16)}) {
    for (const double times : {0.5, 1.7}) {
      const StepModel slow = steps.with(slowed({}, times, times, times));
      EXPECT_NEAR(step_ms(slow, gpt(), asked) / step_ms(steps, gpt(), asked), times, 1e-6);
    }
  }
}

// A machine that computes at half the speed: steps that compute almost alone are forecast well by three others, and the
// factor of computation is above that of communication.
TEST(Anchor, FindsAMachineThatComputesAtHalfTheSpeed) {
  const StepModel steps{platform()};
  const StepModel truth = steps.with(slowed({}, 2, 1, 1));
  std::vector<MeasuredTime> measured;
  for (const Layout& layout : {layout_of(1, 2, 8), layout_of(8, 1, 8), layout_of(8, 1, 1)})
    measured.push_back({gpt(), layout, step_ms(truth, gpt(), layout)});
  const Result<Anchor> anchor = Anchor::of(steps, measured);
  ASSERT_TRUE(anchor.ok());
  const Layout asked = layout_of(2, 2, 16);
  const Result<StepPrediction> before = steps.predict(gpt(), asked);
  const AnchoredStep said = anchor->at(traits_of(gpt(), asked, *before));
  EXPECT_GT(said.compute, said.communication);
  EXPECT_NEAR(said.factor() * before->step.time.value() * 1e-3 / step_ms(truth, gpt(), asked), 1, 0.1);
}

TEST(Anchor, BandsAreNarrowerNearByAndWithMoreSteps) {
  const Anchor one{{computing(0)}, {0.1}};
  double last = 0;
  for (const double place : {0.0, 0.5, 1.0, 3.0, 9.0}) {
    const double here = one.at(computing(place)).log_sd;
    EXPECT_GT(here, last) << place;
    last = here;
  }
  const Anchor three{{computing(0), computing(0.2), computing(0.4)}, {0.1, 0.1, 0.1}};
  EXPECT_LT(three.at(computing(1)).log_sd, one.at(computing(1)).log_sd);
}

TEST(Anchor, DoesNotDependOnTheOrderOfSteps) {
  const Anchor a{{computing(0), computing(1), computing(5)}, {0.1, -0.2, 0.3}};
  const Anchor b{{computing(5), computing(0), computing(1)}, {0.3, 0.1, -0.2}};
  EXPECT_NEAR(a.at(computing(2)).log_factor, b.at(computing(2)).log_factor, 1e-12);
  EXPECT_NEAR(a.at(computing(2)).log_sd, b.at(computing(2)).log_sd, 1e-12);
}

// A step in its forecast's band does not make the forecast less certain than it was; one far outside may.
TEST(Anchor, AMeasuredStepInItsBandWidensNothing) {
  const Anchor calm{{computing(0, 0.05)}, {0.01}};
  EXPECT_LE(calm.at(computing(9, 0.05)).log_sd, 0.05 / 1.28);
  const Anchor off{{computing(0, 0.05)}, {0.6}};
  EXPECT_GT(off.at(computing(9, 0.05)).log_sd, 0.05);
  // Slow as its band allows, which is wider to that side.
  AnchorTraits slow = computing(0, 0.05);
  slow.log_slow = 0.2;
  EXPECT_LE((Anchor{{slow}, {0.15}}).at(computing(9, 0.05)).log_sd, 0.05 / 1.28);
  EXPECT_GT((Anchor{{slow}, {-0.15}}).at(computing(9, 0.05)).log_sd, 0.05 / 1.28);
}

TEST(Anchor, RefusesWhatIsNoStepOfTheJob) {
  const StepModel steps{platform()};
  EXPECT_THAT(Anchor::of(steps, {}), FailsWith("no measured step"));
  const std::vector<MeasuredTime> seconds{{gpt(), layout_of(1, 1, 8), 0.5}};
  EXPECT_THAT(Anchor::of(steps, seconds), FailsWith("check its unit, layout and batch"));
  const std::vector<MeasuredTime> odd{{gpt(), layout_of(3, 1, 8), 500}};
  EXPECT_THAT(Anchor::of(steps, odd), FailsWith("a measured step cannot be forecast"));
  const std::vector<MeasuredTime> many(Anchor::kMostSteps + 1, seconds.front());
  EXPECT_THAT(Anchor::of(steps, many), FailsWith("at most 400"));
}

}  // namespace
}  // namespace stepcast::anchor_test

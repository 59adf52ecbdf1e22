// What `predict` says is to be changed: each action is what its command prints, and none is far from the best layout.
#include "what_to_change.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/output_file.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/forecast_document.h"
#include "stepcast/report/forecast_json.h"

#include "tests/apps/verb_answers.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::test::what_to_change_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(WhatToChange, NamesTheLayoutThatPlanFinds) {
  const Forecast asked =
      answer_of("stepcast predict --model llama-3-8b --gpus 64 --platform dgx-h100 --pp 4");
  ASSERT_TRUE(asked.what_to_change);
  ASSERT_FALSE(asked.what_to_change->actions.empty());
  const ForecastAction& first = asked.what_to_change->actions.front();
  EXPECT_THAT(first.change, HasSubstr("--pp 1"));
  EXPECT_THAT(first.command,
              StartsWith("stepcast predict --model llama-3-8b --gpus 64 --platform dgx-h100 "));
  EXPECT_THAT(first.command, Not(HasSubstr("--json")));
  EXPECT_NEAR(first.saved_ms, asked.step_time_ms - first.step_time_ms, 1e-5);
  EXPECT_NEAR(first.saved_percent, 100 * first.saved_ms / asked.step_time_ms, 1e-5);
  EXPECT_GT(first.saved_percent, 5);
  EXPECT_EQ(first.certainty, "clear");
  EXPECT_EQ(first.n_gpus, 64U);
  EXPECT_THAT(asked.what_to_change->sentence,
              HasSubstr("` the step takes " + duration_text(first.saved_ms) + " less"));
}

TEST(WhatToChange, OneFlagIsNamedByItself) {
  const ForecastAdvice advice = advice_of(
      "stepcast predict --model llama-3-8b --gpus 8 --tp 2 --sp on --pp 1 --mbs 1 --gbs 64 --sharding zero1 "
      "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1");
  const auto found = std::ranges::find(advice.actions, "--recompute none", &ForecastAction::change);
  ASSERT_NE(found, advice.actions.end());
  EXPECT_THAT(found->command, Not(HasSubstr("--recompute-")));
  // A forward pass of four, at most.
  EXPECT_GT(found->saved_percent, 5);
  EXPECT_LT(found->saved_percent, 25);
  EXPECT_GT(found->memory_change_GiB, 0);
}

TEST(WhatToChange, KeepsWhatElseWasAsked) {
  const ForecastAdvice advice = advice_of(
      "stepcast predict --model llama-3-8b --gpus=64 --pp 4 --what-if nvlink=2x --dtype fp8 --explain "
      "--train-tokens 1T");
  ASSERT_FALSE(advice.actions.empty());
  for (const ForecastAction& action : advice.actions) {
    EXPECT_THAT(action.command, HasSubstr(" --what-if nvlink=2x"));
    EXPECT_THAT(action.command, HasSubstr(" --dtype fp8"));
    EXPECT_THAT(action.command, HasSubstr(" --train-tokens 1T"));
    EXPECT_THAT(action.command, Not(HasSubstr("--explain")));
  }
}

// A launch script says all of its layout, and flags take its place.
TEST(WhatToChange, ChangesALaunchScript) {
  const TemporaryFolder folder;
  const std::string script = (folder.path() / "run.sh").string();
  ASSERT_TRUE(
      write_file(script,
                 "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
                 "--num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --bf16 "
                 "--micro-batch-size 1 --global-batch-size 256 --tensor-model-parallel-size 4 "
                 "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 8 "
                 "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1 "
                 "--use-distributed-optimizer --vocab-size 32000 --swiglu --disable-bias-linear\n")
          .ok());
  const std::string asked = "stepcast predict --command-line " + script + " --platform dgx-h100";
  const ForecastAdvice advice = advice_of(asked);
  ASSERT_FALSE(advice.actions.empty()) << advice.sentence;
  const ForecastAction& first = advice.actions.front();
  EXPECT_THAT(first.command, StartsWith(asked + " --"));
  EXPECT_GT(first.saved_percent, 20) << first.command;
  EXPECT_NEAR(answer_of(first.command).step_time_ms, first.step_time_ms, 1e-6 * first.step_time_ms);
}

TEST(WhatToChange, SaysWhatFits) {
  const std::string asked =
      "stepcast predict --model llama-3-70b --gpus 32 --tp 1 --pp 1 --mbs 1 --gbs 64 --layout as-said";
  const ForecastAdvice advice = advice_of(asked);
  ASSERT_FALSE(advice.actions.empty());
  EXPECT_THAT(advice.sentence, StartsWith("Your job does not fit. With "));
  EXPECT_TRUE(answer_of(advice.actions.front().command).fits());
  EXPECT_EQ(advice.actions.front().n_gpus, 32U);
  EXPECT_EQ(advice.actions.front().certainty, "fits");
}

TEST(WhatToChange, TakesMoreGpusWhereNoLayoutFits) {
  const ForecastAdvice advice = advice_of("stepcast predict --model llama-3.1-405b --gpus 8 --gbs 64");
  ASSERT_EQ(advice.actions.size(), 1U) << advice.sentence;
  const ForecastAction& action = advice.actions.front();
  EXPECT_THAT(advice.sentence, StartsWith("Nothing fits on 8 GPUs. On "));
  EXPECT_GT(action.n_gpus, 8U);
  EXPECT_THAT(action.change, HasSubstr(fmt::format("--gpus {}", action.n_gpus)));
  EXPECT_TRUE(answer_of(action.command).fits());
}

TEST(WhatToChange, SaysWhereNothingIsToBeGained) {
  const ForecastAdvice advice = advice_of("stepcast predict --model llama-3-8b --gpus 8 --gbs 64");
  const std::string again = advice.actions.empty() ? "" : advice.actions.front().command;
  const ForecastAdvice then = again.empty() ? advice : advice_of(again);
  EXPECT_TRUE(then.actions.empty()) << then.sentence;
  EXPECT_THAT(then.sentence, StartsWith("Nothing to gain: "));
}

// Checkpoints that stop training half as often as they could, and a cluster without spare nodes.
TEST(WhatToChange, PricesCheckpointsAndSpareNodesOfARun) {
  const std::string asked =
      "stepcast predict --model llama-3-70b --gpus 1024 --tp 4 --pp 4 --mbs 1 --gbs 1024 --sp on --sharding "
      "zero1 "
      "--train-tokens 2T --failures default --recovery interval=4h,spares=1";
  const ForecastAdvice advice = advice_of(asked);
  const double now_days = answer_alone(asked + " --advice off").training->run->days;
  std::size_t of_run = 0;
  for (const ForecastAction& action : advice.actions) {
    const Forecast then = answer_alone(action.command + " --advice off");
    EXPECT_NEAR(now_days - then.training->run->days, action.saved_days.value_or(0), 1e-6 * now_days)
        << action.command;
    EXPECT_GE(action.saved_percent, 1) << action.change;
    if (action.change.find("--recovery") == std::string::npos) continue;
    ++of_run;
    EXPECT_EQ(action.saved_ms, 0);
  }
  EXPECT_GE(of_run, 1U) << advice.sentence;
  EXPECT_THAT(advice.sentence, HasSubstr(" days less ("));
}

TEST(WhatToChange, IsNotOfSeriesNorOfPools) {
  EXPECT_THAT(cli::run_verb({"predict", "--model", "llama-3-8b", "--gpus", "8,16", "--advice", "on"}).error,
              HasSubstr("--advice needs one step"));
  EXPECT_FALSE(answer_of("stepcast predict --model llama-3-8b --gpus 8xh100+8xa100").what_to_change);
}

// The part without computation that costs all GPUs together most.
std::string largest_loss(const Forecast& forecast) {
  std::map<std::string, double> lost;
  for (const ForecastClass& one : forecast.classes)
    for (const NamedTime& part : one.parts())
      if (!part.key.starts_with("computation"))
        lost[part.key] += part.time_ms * static_cast<double>(one.n_ranks);
  const auto most = std::ranges::max_element(lost, {}, [](const auto& part) { return part.second; });
  return most == lost.end() ? std::string{} : part_text(most->first);
}

// Models, GPUs and layouts in turn.
TEST(WhatToChange, PromisesWhatItsCommandPrintsAndIsNearTheBestLayout) {
  const auto plan_ms = [](const std::string& job) {
    const Result<JsonValue> plan = parse_json(json_of("stepcast plan " + job), "plan");
    EXPECT_TRUE(plan.ok());
    const JsonValue* chosen = plan ? plan->find("chosen_layout") : nullptr;
    const JsonValue* ms = chosen != nullptr ? chosen->find("promised_step_time_ms") : nullptr;
    return ms != nullptr ? ms->number() : 0.0;
  };
  int n_actions = 0;
  for (const std::string model :
       {"llama-3-8b", "llama-3-70b", "mixtral-8x7b", "gpt3-175b", "qwen3-30b-a3b"}) {
    for (const int gpus : {16, 32}) {
      const std::string job = fmt::format("--model {} --gpus {} --gbs 256", model, gpus);
      const double best_ms = plan_ms(job);
      for (const std::string layout :
           {"", " --pp 4", " --tp 8 --recompute full", " --tp 4 --pp 4 --mbs 1 --sharding zero1"}) {
        const std::string question = "stepcast predict " + job + layout;
        const Forecast asked = answer_of(question);
        ASSERT_TRUE(asked.what_to_change) << question;
        EXPECT_THAT(forecast_verdict(asked), HasSubstr("the largest loss is " + largest_loss(asked) + " ("))
            << question;
        const std::vector<ForecastAction>& actions = asked.what_to_change->actions;
        EXPECT_LE(actions.size(), 5U);
        double reached_ms = asked.fits() ? asked.promised_ms() : 1e300;
        for (const ForecastAction& action : actions) {
          ++n_actions;
          reached_ms = std::min(reached_ms, action.promised_step_time_ms);
        }
        if (!actions.empty()) {
          const ForecastAction& first = actions.front();
          const Forecast again = answer_alone(first.command);
          EXPECT_NEAR(again.step_time_ms, first.step_time_ms, 1e-6 * first.step_time_ms) << question << "\n"
                                                                                         << first.command;
          EXPECT_NEAR(again.promised_ms(), first.promised_step_time_ms, 1e-6 * first.step_time_ms)
              << question << "\n"
              << first.command;
          EXPECT_TRUE(again.fits()) << first.command;
          if (asked.fits()) {
            EXPECT_GE(first.saved_percent, 1) << question;
          }
        }
        if (best_ms > 0) {
          EXPECT_LE(reached_ms, 1.05 * best_ms) << question;
        }
      }
    }
  }
  EXPECT_GT(n_actions, 40);
}

}  // namespace
}  // namespace stepcast::test::what_to_change_test

// What `replay` and `predict --trace` say is to be changed of a recorded step: each action is what its command prints.
#include "trace_changes.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/json_value.h"

#include "tests/apps/verb_answers.h"
#include "tests/support/data.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::test::trace_changes_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string example() { return (source_dir() / "examples" / "dlrm_4gpu").string(); }

// In the answer of `replay`.
ForecastAdvice replayed_advice(const std::string& command) {
  const Result<JsonValue> replay = parse_json(json_of(command), "replay");
  const JsonValue* simulated = replay ? replay->find("simulated") : nullptr;
  const JsonValue* advice = simulated != nullptr ? simulated->find("what_to_change") : nullptr;
  if (advice == nullptr || advice->is_null()) return {};
  ForecastAdvice out{.sentence = std::string{advice->find("sentence")->text()}};
  for (const JsonValue& action : advice->find("actions")->items())
    out.actions.push_back({.change = std::string{action.find("change")->text()},
                           .step_time_ms = action.find("step_time_ms")->number(),
                           .saved_ms = action.find("saved_ms")->number(),
                           .saved_p10_ms = action.find("saved_p10_ms")->number(),
                           .certainty = std::string{action.find("certainty")->text()},
                           .command = std::string{action.find("command")->text()}});
  return out;
}

// Each command prints its step, which is shorter than the step as asked by what is promised, and by more than that is off.
std::size_t check_actions(const std::string& place) {
  const Forecast asked = answer_of("stepcast predict --trace " + place);
  EXPECT_TRUE(asked.what_to_change) << place;
  if (!asked.what_to_change) return 0;
  const ForecastAdvice &advice = *asked.what_to_change,
                       replayed = replayed_advice("stepcast replay " + place + " --advice on");
  EXPECT_EQ(advice.sentence, replayed.sentence) << place;
  EXPECT_EQ(advice.actions.size(), replayed.actions.size()) << place;
  EXPECT_LE(advice.actions.size(), 5U);
  if (advice.actions.empty()) {
    EXPECT_NE(advice.sentence, "") << place;
  }
  double before_ms = 0;
  for (const ForecastAction& action : advice.actions) {
    EXPECT_GE(action.step_time_ms, before_ms) << "the fastest first";
    before_ms = action.step_time_ms;
    EXPECT_DOUBLE_EQ(answer_alone(action.command).step_time_ms, action.step_time_ms) << action.command;
    EXPECT_NEAR(asked.step_time_ms - action.step_time_ms, action.saved_ms, 1e-6 * asked.step_time_ms)
        << action.command;
    EXPECT_GT(action.saved_percent, 1) << action.command;
    EXPECT_NE(action.reason, "") << action.command;
    EXPECT_EQ(action.certainty == "clear", action.saved_p10_ms > 0) << action.command;
    EXPECT_THAT(action.command, Not(HasSubstr("--json")));
  }
  for (std::size_t i = 0; i < std::min(advice.actions.size(), replayed.actions.size()); ++i) {
    EXPECT_DOUBLE_EQ(advice.actions[i].saved_ms, replayed.actions[i].saved_ms) << place;
    EXPECT_EQ(advice.actions[i].change, replayed.actions[i].change) << place;
  }
  return advice.actions.size();
}

TEST(TraceChanges, OfTheExampleAreWhatTheirCommandsPrint) { EXPECT_GE(check_actions(example()), 1U); }

TEST(TraceChanges, KeepWhatElseWasAsked) {
  const ForecastAdvice advice =
      advice_of("stepcast predict --trace " + example() + " --what-if gemm=2x --samples-per-step 64");
  ASSERT_FALSE(advice.actions.empty()) << advice.sentence;
  for (const ForecastAction& action : advice.actions) {
    EXPECT_THAT(action.command, HasSubstr("--what-if gemm=2x"));
    EXPECT_THAT(action.command, HasSubstr("--samples-per-step 64"));
    EXPECT_DOUBLE_EQ(answer_alone(action.command).step_time_ms, action.step_time_ms) << action.command;
  }
}

// What is taken away once is not there to be taken away again.
TEST(TraceChanges, SayWhereNothingIsToBeGained) {
  std::string command = "stepcast predict --trace " + example();
  ForecastAdvice advice = advice_of(command);
  for (int i = 0; i < 12 && !advice.actions.empty(); ++i)
    advice = advice_of(command = advice.actions.front().command);
  EXPECT_TRUE(advice.actions.empty()) << command;
  EXPECT_THAT(advice.sentence, StartsWith("Nothing to gain: ")) << command;
}

TEST(TraceChanges, AreOfOneBatchAndWhereTheyAreAskedFor) {
  EXPECT_FALSE(answer_alone("stepcast predict --trace " + example()).what_to_change);
  EXPECT_EQ(replayed_advice("stepcast replay " + example()).sentence, "");
  EXPECT_THAT(cli::run_verb({"predict", "--trace", example(), "--batch", "64,128", "--advice", "on"}).error,
              HasSubstr("--advice needs one batch"));
}

TEST(TraceChanges, OfMeasuredTracesAreWhatTheirCommandsPrint) {
  SKIP_WITHOUT_DATA();
  const std::filesystem::path traces = *measured_data() / "traces";
  std::size_t found = 0;
  for (const char* place :
       {"dlrm8", "vgg13", "resnet_linear/resnet_kineto.json.gz", "nccl_data", "ns_resolution"})
    found += check_actions((traces / place).string());
  EXPECT_GE(found, 4U);
}

double expected_ms(const JsonValue& answer, std::string_view name) {
  for (const JsonValue& one : answer.find("shardings")->items())
    if (one.find("name")->text() == name) return one.find("expected_step_time_ms")->number();
  ADD_FAILURE() << "no " << name;
  return 0;
}

// A plan that puts all tables on two of eight GPUs.
TEST(ShardingChanges, AreWhatTheirCommandsPrint) {
  const TemporaryFolder folder;
  const std::string plan = (folder.path() / "now.json").string(),
                    written = (folder.path() / "best.json").string();
  const std::string job = "stepcast shard --model dlrm-mlperf-v1 --gpus 8 ";
  json_of(job + "--sharders naive --output " + plan);
  const Result<JsonValue> asked = parse_json(json_of(job + "--now " + plan + " --sharders search"), "shard");
  ASSERT_TRUE(asked.ok());
  const JsonValue* advice = asked->find("what_to_change");
  ASSERT_NE(advice, nullptr);
  ASSERT_FALSE(advice->is_null());
  for (const JsonValue& action : advice->find("actions")->items()) {
    std::string command{action.find("command")->text()};
    const std::size_t file = command.find("sharding.json");
    ASSERT_NE(file, std::string::npos) << command;
    command.replace(file, std::string_view{"sharding.json"}.size(), written);
    const Result<JsonValue> again = parse_json(json_of(command), "shard");
    ASSERT_TRUE(again.ok());
    EXPECT_NEAR(expected_ms(*again, "now") - expected_ms(*again, action.find("change")->text()),
                action.find("saved_ms")->number(), 1e-6)
        << command;
    EXPECT_TRUE(std::filesystem::exists(written)) << command;
  }
  EXPECT_FALSE(advice->find("actions")->items().empty()) << advice->find("sentence")->text();
  EXPECT_THAT(std::string{advice->find("actions")->items().begin()->find("reason")->text()},
              StartsWith("move "));
  // Of no plan that is held against, nothing.
  const Result<JsonValue> search = parse_json(json_of(job + "--sharders size,lookup"), "shard");
  ASSERT_TRUE(search.ok());
  EXPECT_TRUE(search->find("what_to_change")->is_null());
}

}  // namespace
}  // namespace stepcast::test::trace_changes_test

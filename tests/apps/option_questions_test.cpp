// Every option of the table is taken for the questions that its row names, and refused for the others.
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/words.h"
#include "stepcast/sweep/option_table.h"

#include "plan_options.h"
#include "predict_options.h"

namespace stepcast::test::option_questions_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

// The option with a value that it takes, and the one that it needs.
Words given(const Option& option) {
  Words words;
  if (!option.values.needs.empty()) words = given(*find_option(option.values.needs, option.of));
  words.emplace_back(option.name());
  if (option.kind == OptionKind::truth) return words;
  const bool is_number = option.kind == OptionKind::whole || option.kind == OptionKind::number;
  std::string value = is_number ? "1" : "x";
  any_word(option.values.one_of, [&](std::string_view word) {
    value = word;
    return true;
  });
  words.push_back(value);
  return words;
}

template <class Options>
Result<Question> asked(void (*declare)(CLI::App&, Options&), const Words& words) {
  CLI::App app;
  Options options{app};
  declare(app, options);
  Words reversed{words.rbegin(), words.rend()};  // CLI11 takes the last first
  app.parse(reversed);
  if constexpr (requires { cli::subject_of(options); })
    return cli::question_of(options, cli::subject_of(options));
  else
    return cli::question_of(options);
}

// `words` ask `question`.
template <class Options>
void expect_rows(void (*declare)(CLI::App&, Options&), QuestionSet verb, Question question,
                 const Words& words) {
  ASSERT_TRUE(asked(declare, words).ok()) << asked(declare, words).error().message();
  EXPECT_EQ(*asked(declare, words), question);
  for (const Option& option : option_table()) {
    // These say what is asked.
    if ((option.of & verb) == 0 || is_among(option.name(), "--trace --from-log --rl --model --jobs"))
      continue;
    Words all = words;
    for (const std::string& word : given(option)) all.push_back(word);
    const Result<Question> found = asked(declare, all);
    EXPECT_EQ(found.ok(), (option.of & bit(question)) != 0) << option.name() << ", " << to_string(question);
    if (found.ok()) continue;
    EXPECT_THAT(found.error().message(), HasSubstr("--"));
    EXPECT_THAT(found.error().message(), Not(HasSubstr("\n")));
  }
}

TEST(OptionQuestions, PredictTakesWhatTheTableSays) {
  const auto expect = [](Question question, const Words& words) {
    expect_rows(cli::declare_predict_options, kPredictQuestions, question, words);
  };
  expect(Question::described, {"--model", "llama-3-8b"});
  expect(Question::log, {"--from-log", "train.log"});
  expect(Question::traces, {"--trace", "traces"});
  expect(Question::recommendation, {"--model", "dlrm-mlperf-v1"});
  expect(Question::post_training, {"--model", "llama-3-8b", "--rl", "grpo"});
}

TEST(OptionQuestions, PlanTakesWhatTheTableSays) {
  const auto expect = [](Question question, const Words& words) {
    expect_rows(cli::declare_plan_options, kPlanQuestions, question, words);
  };
  expect(Question::plan, {"--model", "llama-3-8b"});
  expect(Question::plan_pools, {"--model", "llama-3-8b", "--gpus", "8xh100+8xa100"});
  expect(Question::plan_jobs, {"--jobs", "jobs.toml"});
  expect(Question::plan_rl, {"--model", "llama-3-8b", "--rl", "grpo"});
}

}  // namespace
}  // namespace stepcast::test::option_questions_test

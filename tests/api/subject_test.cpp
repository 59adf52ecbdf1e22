// Subjects: what is recognised as one, and that every question finds the row that answers it.
#include "stepcast/api/subject.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/json_value.h"

#include "tests/support/fails_with.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::subject_test {
namespace {

using test::FailsWith;
using ::testing::HasSubstr;

std::string called(const Job& job, const RlSettings& rl = {}) {
  return std::string{subject_of(job, rl).called};
}

StepQuestion post_training(std::vector<std::string> what_if = {}) {
  StepQuestion question;
  question.step.job = {.model = "llama-3.1-8b", .n_gpus = 16};
  question.step.what_if = std::move(what_if);
  question.rl = {.algorithm = "grpo", .prompts = 64, .generations = 16, .lengths = "mean=1100,max=4096"};
  return question;
}

StepQuestion described(const std::string& model) {
  StepQuestion question;
  question.step.job = {.model = model, .n_gpus = 8};
  question.step.job.settings.global_batch_sequences = 8192;
  return question;
}

const Sensitivity& sensitivity_of(const StepAnswer& answer) {
  return std::visit([](const auto& given) -> const Sensitivity& { return given.sensitivity; }, answer);
}

TEST(Subjects, AreRecognised) {
  EXPECT_EQ(called({.model = "dlrm-mlperf-v1"}), "a recommendation model");
  EXPECT_EQ(called({.model = "llama-3-8b"}, {.algorithm = "grpo"}), "a step of post-training");
  EXPECT_EQ(called({.command_line = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "
                                    "data.train_batch_size=1024 actor_rollout_ref.model.path=Qwen/Qwen3-8B "
                                    "actor_rollout_ref.rollout.n=5"}),
            "a step of post-training");
  EXPECT_EQ(called({.model = "resnet-50"}), "a network");
  EXPECT_EQ(called({.model = "vit-base-patch16-224"}), "a network");
  EXPECT_EQ(called({.model = "llama-3-8b"}), "a transformer");
  EXPECT_EQ(called({.model = "nobody-has-it"}), "a transformer") << "whose readers say what is wrong";
}

TEST(Subjects, KnowTheirModelsByName) {
  for (const Subject& subject : subjects()) {
    if (subject.names == nullptr) continue;
    for (const std::string& name : subject.names())
      EXPECT_EQ(called({.model = name}), subject.called) << name;
  }
}

TEST(Subjects, AnswerWhatTheirRowsHave) {
  for (const StepQuestion& question :
       {described("dlrm-mlperf-v1"), described("resnet-50"), described("gpt2"), post_training()}) {
    const Subject& subject = subject_of(question.step.job, question.rl);
    ASSERT_NE(subject.predict, nullptr) << subject.called;
    ASSERT_NE(subject.sensitivity, nullptr) << subject.called;
    const Session session;
    const Result<StepAnswer> step = subject.predict(session, question);
    ASSERT_TRUE(step.ok()) << step.error().message();
    EXPECT_TRUE(sensitivity_of(*step).resources.empty()) << "which nobody asked for";
    const Result<StepAnswer> sensitive = subject.sensitivity(session, question);
    ASSERT_TRUE(sensitive.ok()) << sensitive.error().message();
    EXPECT_FALSE(sensitivity_of(*sensitive).resources.empty()) << subject.called;
  }
}

TEST(Subjects, PostTrainingSavesWhatItsWhatIfsSay) {
  const Session session;
  const Subject& subject = subject_of({}, {.algorithm = "grpo"});
  const Result<StepAnswer> answer = subject.sensitivity(session, post_training());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  const auto& report = std::get<RlReport>(*answer);
  const Sensitivity& sensitivity = report.sensitivity;
  EXPECT_NEAR(sensitivity.step_time_ms, report.forecast.step_s * 1e3, 1e-9 * sensitivity.step_time_ms);
  double elasticity = 0;
  for (const ResourceSensitivity& one : sensitivity.resources) {
    StepQuestion faster = post_training({one.resource + "=1.1x"});
    const RlSplit& split = report.forecast.split;
    faster.rl.generation_tensor = split.generation_tensor;
    faster.rl.generation_pipeline = split.generation_pipeline;
    const Result<StepAnswer> changed = subject.predict(session, faster);
    ASSERT_TRUE(changed.ok()) << changed.error().message();
    const double saved_ms = (report.forecast.step_s - std::get<RlReport>(*changed).forecast.step_s) * 1e3;
    EXPECT_NEAR(one.saved_ms, saved_ms, 1e-6 * sensitivity.step_time_ms) << one.resource;
    elasticity += one.elasticity;
  }
  EXPECT_GT(elasticity, 0.3);
  EXPECT_LE(elasticity, 1.001) << "parts of a step make no more than the step";
}

TEST(Subjects, RefuseWhatIfsOfOthers) {
  const std::vector<std::string> reuse{"gemm=2x", "reuse=2x"};
  EXPECT_TRUE(check_what_ifs(subject_of({.model = "dlrm-mlperf-v1"}), reuse).ok());
  EXPECT_THAT(check_what_ifs(subject_of({.model = "llama-3-8b"}), reuse),
              FailsWith("--what-if: reuse belongs to recommendation models"));
}

TEST(Subjects, OwnOptions) {
  const Subject& transformer = subject_of({.model = "llama-3-8b"});
  const auto owner = [&](const char* flag) {
    return owner_of(find_option(flag, kPredictQuestions)->of & ~bit(Question::traces), transformer);
  };
  ASSERT_NE(owner("--tables"), nullptr);
  EXPECT_EQ(owner("--tables")->plural, "recommendation models");
  ASSERT_NE(owner("--prompts"), nullptr);
  EXPECT_EQ(owner("--prompts")->own_flag, "--rl");
  EXPECT_EQ(owner("--tp"), nullptr);
  EXPECT_EQ(owner("--step"), nullptr) << "of traces, which are no subject";
}

std::string row_of(const std::string& text) {
  const Result<SweepSpec> spec = parse_sweep(text, "s.toml");
  EXPECT_TRUE(spec.ok()) << spec.error().message();
  const Result<std::string> row = Session{}.run(spec->points.front());
  EXPECT_TRUE(row.ok()) << row.error().message();
  return *row;
}

double step_ms_of(const std::string& row) {
  const Result<JsonValue> json = parse_json(row, "row");
  const JsonValue* step = json.ok() ? json->find("step_time_ms") : nullptr;
  return step != nullptr && step->is_number() ? step->number() : 0;
}

TEST(Subjects, OfASweepCountNodes) {
  const double of_gpus = step_ms_of(row_of("model = \"dlrm-mlperf-v1\"\ngpus = 16\n"));
  EXPECT_GT(of_gpus, 0);
  EXPECT_EQ(step_ms_of(row_of("model = \"dlrm-mlperf-v1\"\nnodes = 2\n")), of_gpus);
}

TEST(Subjects, OfASweepRefuseKeysOfOthers) {
  EXPECT_THAT(row_of("model = \"gpt2\"\ngpus = 8\ntables = \"t.csv\"\n"),
              HasSubstr("belongs to recommendation models"));
  EXPECT_THAT(row_of("model = \"gpt2\"\ngpus = 8\nprompts = 64\n"),
              HasSubstr("prompts: belongs to steps of post-training; add rl"));
  EXPECT_THAT(row_of("model = \"dlrm-mlperf-v1\"\ngpus = 8\nrl = \"grpo\"\n"),
              HasSubstr("rl: belongs to steps of post-training"));
}

// Tables and indices side by side, in the order in which they were named.
TEST(Subjects, InspectTheirFiles) {
  const std::string seeds = (test::source_dir() / "fuzz" / "corpus").string();
  FileQuestion question;
  question.files = {seeds + "/table_indices/deflated.npz", seeds + "/embedding_tables/two"};
  const Subject& subject = subject_of({.model = "dlrm-mlperf-v1"});
  EXPECT_TRUE(subject.holds(question.files[0], ""));
  EXPECT_TRUE(subject.holds("t.csv", "name,rows,dim,pooling_factor\n"));
  EXPECT_FALSE(subject.holds("t.csv", "{\"traceEvents\": []}"));
  const auto found = subject.inspect(question);
  ASSERT_EQ(found.size(), 2U);
  ASSERT_TRUE(found[0].ok() && found[1].ok());
  EXPECT_TRUE(std::holds_alternative<InspectedIndices>(**found[0]));
  EXPECT_TRUE(std::holds_alternative<InspectedTables>(**found[1]));
}

}  // namespace
}  // namespace stepcast::subject_test

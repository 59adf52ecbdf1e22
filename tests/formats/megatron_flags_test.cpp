#include "stepcast/formats/detail/megatron_flags.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/describe/job.h"
#include "stepcast/formats/megatron.h"
#include "stepcast/formats/resolve_job.h"

#include "tests/support/data.h"

namespace stepcast::megatron_flags_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kSmall =
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
    "--max-position-embeddings 1024 --micro-batch-size 4 ";
constexpr std::string_view kWords = "--vocab-size 50257 ";

Result<ResolvedJob> resolved(const std::string& more, std::string_view base, bool strict) {
  Job job;
  job.command_line = std::string{base} + more;
  job.strict = strict;
  return resolve(job);
}

ResolvedJob small(const std::string& more) {
  auto job = resolved(std::string{kWords} + more, kSmall, false);
  EXPECT_TRUE(job.ok()) << job.error().message();
  return job.ok() ? *std::move(job) : ResolvedJob{};
}

std::string refusal(const std::string& more, bool strict = false) {
  const auto job = resolved(std::string{kWords} + more, kSmall, strict);
  return job.ok() ? "no error" : job.error().message();
}

TEST(MegatronFlags, EveryFlagHasOneClass) {
  std::set<std::string> names;
  for (const MegatronFlag& flag : megatron_flags()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    EXPECT_TRUE(flag.name.starts_with("--")) << flag.name;
    EXPECT_FALSE(flag.why.empty()) << flag.name;
    EXPECT_EQ(use_of_megatron_flag(flag.name), flag.use) << flag.name;
  }
  EXPECT_GT(names.size(), 600U);
}

TEST(MegatronFlags, SayWhenATrainingEvaluatesAndSaves) {
  const TrainingRoutine none = small("").routine;
  EXPECT_EQ(none.evaluation_interval, 0);
  EXPECT_EQ(none.save_interval, 0);
  const TrainingRoutine all =
      small(" --eval-interval 200 --eval-iters 32 --save-interval 250 --async-save").routine;
  EXPECT_EQ(all.evaluation_interval, 200);
  EXPECT_EQ(all.evaluation_batches, 32);
  EXPECT_EQ(all.save_interval, 250);
  EXPECT_TRUE(all.saves_asynchronously);
  EXPECT_EQ(small(" --eval-iters 32").routine.evaluation_interval, 0);
  EXPECT_EQ(small(" --eval-interval 50").routine.evaluation_batches, 100);  // Megatron-LM's
  EXPECT_THAT(refusal(" --save-interval -1"), ::testing::HasSubstr("--save-interval"));
}

TEST(MegatronFlags, LongerNamesHoldOverPatterns) {
  EXPECT_EQ(use_of_megatron_flag("--log-interval"), MegatronFlagUse::passed_over);
  EXPECT_EQ(use_of_megatron_flag("--log-params-norm"), MegatronFlagUse::understood);
  EXPECT_EQ(use_of_megatron_flag("--log-max-attention-logit"), MegatronFlagUse::not_modelled);
  EXPECT_EQ(use_of_megatron_flag("--inference-max-seq-length"), MegatronFlagUse::passed_over);
  EXPECT_EQ(use_of_megatron_flag("--inference-of-tomorrow"), MegatronFlagUse::out_of_scope);
  EXPECT_EQ(use_of_megatron_flag("--dist-ckpt-optim-fully-reshardable"), MegatronFlagUse::passed_over);
  EXPECT_EQ(use_of_megatron_flag("--no-rl-persist-cuda-graphs"), MegatronFlagUse::passed_over);
  EXPECT_EQ(use_of_megatron_flag("--num-layerz"), std::nullopt);
  EXPECT_EQ(use_of_megatron_flag("num-layers"), std::nullopt);
  EXPECT_EQ(use_of_megatron_flag(""), std::nullopt);
}

// Megatron Core runs operator by operator, whether a script, a name or nothing says that it does; the figures are fitted.
TEST(MegatronFlags, OperatorsOfAnEagerStackTakeTheHostTime) {
  const auto launches = [](const std::string& more) {
    return small(more).layout.layer.operator_launches.value_or(0);
  };
  EXPECT_GT(launches(""), 10);
  EXPECT_LT(launches("--transformer-impl local"), launches("--transformer-impl transformer_engine"));
  EXPECT_GT(launches("--deterministic-mode"), launches(""));
  EXPECT_EQ(launches("--use-legacy-models"), 0);
  Job job;
  job.command_line = std::string{kSmall} + std::string{kWords};
  job.framework = Framework::nemo;
  EXPECT_FALSE(resolve(job)->layout.layer.operator_launches);
  const Layout unnamed = resolve(Job{.model = "llama-3-8b"})->layout;
  EXPECT_TRUE(unnamed.layer.operator_launches);
  EXPECT_EQ(unnamed, resolve(Job{.model = "llama-3-8b", .framework = Framework::megatron})->layout);
}

TEST(MegatronFlags, OppositesOfSwitchesAct) {
  EXPECT_FALSE(small("--add-bias-linear --no-add-bias-linear").model.ffn_bias);
  EXPECT_TRUE(small("--no-disable-bias-linear").model.ffn_bias);
  EXPECT_FALSE(small("--no-masked-softmax-fusion").layout.layer.fused.softmax);
  EXPECT_TRUE(small("--masked-softmax-fusion").layout.layer.fused.softmax);
  EXPECT_TRUE(small("--apply-rope-fusion").layout.layer.fused.rotary);
  EXPECT_FALSE(small("--no-sequence-parallel").layout.layer.sequence_parallel);
}

// A line for each class: what it says is in the job, in a note, nowhere, or an error with the reason.
TEST(MegatronFlags, ClassesDoWhatTheyAreFor) {
  const ResolvedJob acts =
      small("--softmax-type learnable --attention-output-gate --quick-geglu --log-params-norm");
  EXPECT_TRUE(acts.model.attention_sinks && acts.model.attention_output_gate && acts.model.gated_ffn);
  EXPECT_TRUE(acts.layout.optimizer.parameter_norm);
  EXPECT_FALSE(acts.layout.optimizer.gradient_zeros);
  EXPECT_THAT(acts.not_modelled, IsEmpty());
  EXPECT_EQ(small("--no-position-embedding").model.position, PositionEncoding::none);
  EXPECT_EQ(small("--no-position-embedding --position-embedding-type rope").model.position,
            PositionEncoding::rotary);
  EXPECT_THAT(small("--fp32-residual-connection --moe-paged-stash-words a b").not_modelled,
              ElementsAre("--fp32-residual-connection", "--moe-paged-stash-words a b"));
  const ResolvedJob silent = small(
      "--decoupled-lr 1 --decoupled-min-lr 1 --rope-type yarn --dist-ckpt-strictness log_all "
      "--max-tokens-to-oom 9 "
      "--use-persistent-ckpt-worker --async-strategy nvrx --yarn-beta-fast 32 --inference-max-seq-length "
      "256");
  EXPECT_EQ(silent.layout, small("").layout);
  EXPECT_EQ(silent.model, small("").model);
  EXPECT_THAT(silent.not_modelled, IsEmpty());
  EXPECT_EQ(silent.notes, small("").notes);
  const std::pair<const char*, const char*> kRefused[] = {
      {"--num-tokens-to-generate 16", "inference"},
      {"--perform-rl-step", "reinforcement learning"},
      {"--img-h 336", "vision"},
      {"--retriever-seq-length 9", "retrieve"},
      {"--export-kd-teacher-load x", "teacher"},
      {"--flextron", "elastic"},
      {"--experimental-attention-variant gdn2", "this one"},
      {"--model-provider llava_vlm", "models of other kinds"}};
  for (const auto& [flag, why] : kRefused) {
    EXPECT_THAT(refusal(flag), AllOf(HasSubstr("not modelled"), HasSubstr(why))) << flag;
  }
}

TEST(MegatronFlags, UnknownOnesAreLeftOutWithANote) {
  const ResolvedJob job = small("--num-layerz 3 --bf16 --frobnicate a b");
  EXPECT_EQ(job.model.n_layers, 24);
  EXPECT_THAT(job.notes, Contains("left out: --num-layerz: unknown flag; did you mean `--num-layers`?"));
  EXPECT_THAT(job.notes, Contains(HasSubstr("left out: --frobnicate: unknown flag")));
  EXPECT_THAT(refusal("--num-layerz 3", true),
              AllOf(HasSubstr("--num-layerz: unknown flag"), HasSubstr("did you mean `--num-layers`?")));
  EXPECT_EQ(refusal("--num-layers 24", true), "no error");
}

// What a condition may add, behind a switch, a number and in front of all.
TEST(MegatronFlags, LeavesOutFlagsThatNobodyKnows) {
  const ResolvedJob job = small("--bf16 ${MORE[@]} --num-query-groups 4 $REST --save $CKPT --swiglu");
  EXPECT_THAT(job.notes, Contains("left out: ${MORE[@]}: the script does not set it"));
  EXPECT_THAT(job.notes, Contains("left out: $REST: the script does not set it"));
  EXPECT_THAT(job.notes, Not(Contains(HasSubstr("CKPT"))));
  EXPECT_TRUE(job.model.gated_ffn);
  EXPECT_THAT(refusal("--num-query-groups $N"), HasSubstr("found `$N`"));
  EXPECT_THAT(refusal("--bf16 $MORE", true), HasSubstr("$MORE: the script does not set it"));
}

TEST(MegatronFlags, BatchSchedulesEndAtTheirLastBatch) {
  for (const char* text : {"--step-batch-size-schedule 0:384 200B:768 400B:1152",
                           "--step-batch-size-schedule '0:384 200B:768 400B:1152'"}) {
    const ResolvedJob job = small(text);
    EXPECT_EQ(job.layout.batch.global_batch_sequences, 1152);
    EXPECT_THAT(job.not_modelled, ElementsAre("--step-batch-size-schedule 0:384 200B:768 400B:1152"));
  }
  EXPECT_THAT(refusal("--step-batch-size-schedule 0:x"), HasSubstr("--step-batch-size-schedule"));
}

// 2 x 2 ranks of a stage hold 8 experts with tensor parallelism of 1 in groups of 8: 8 / 2 replicas.
TEST(MegatronFlags, TakesTheFewestGpusOfALineThatNamesNone) {
  const ResolvedJob job = small(
      "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --num-experts 8 "
      "--expert-model-parallel-size 8 --expert-tensor-parallel-size 1 --global-batch-size 64");
  EXPECT_EQ(job.layout.world_size(), 16);
  EXPECT_THAT(job.notes, Contains(HasSubstr("GPUs not given: 16, the fewest")));
  EXPECT_THAT(small("").notes, Contains(HasSubstr("GPUs not given: 1,")));
}

TEST(MegatronFlags, KnowsTheEncoderByItsVocabulary) {
  const auto bert = resolved("--vocab-file vocab.txt", kSmall, false);
  ASSERT_TRUE(bert.ok()) << bert.error().message();
  EXPECT_EQ(bert->model.architecture, Architecture::encoder);
  EXPECT_EQ(bert->model.vocab_size, 30522);
  EXPECT_THAT(bert->notes, Contains(HasSubstr("pretrain_bert.py")));
  const auto gpt = resolved("--vocab-file vocab.json --merge-file merges.txt", kSmall, false);
  ASSERT_TRUE(gpt.ok()) << gpt.error().message();
  EXPECT_EQ(gpt->model.architecture, Architecture::decoder);
  EXPECT_EQ(gpt->model.vocab_size, 50257);
  EXPECT_THAT(gpt->notes, Not(Contains(HasSubstr("vocabulary"))));
}

TEST(MegatronFlags, HaveAClassForEveryFlagOfTheParser) {
  SKIP_WITHOUT_DATA();
  const auto file = *test::measured_data() / "field" / "megatron_arguments.csv";
  const auto text = read_file(file);
  if (!text.ok()) GTEST_SKIP() << text.error().message();
  auto rows = CsvRows::open(*text, file.string());
  ASSERT_TRUE(rows.ok()) << rows.error().message();
  std::size_t n = 0;
  for (auto more = rows->next(); more.ok() && *more; more = rows->next()) {
    const std::string flags{rows->cell("flags")};
    for (std::size_t at = 0; at < flags.size();) {
      const std::size_t end = std::min(flags.find(' ', at), flags.size());
      const std::string flag = flags.substr(at, end - at);
      EXPECT_TRUE(use_of_megatron_flag(flag).has_value()) << flag;
      at = end + 1;
      ++n;
    }
  }
  EXPECT_GT(n, 900U);
}

}  // namespace
}  // namespace stepcast::megatron_flags_test

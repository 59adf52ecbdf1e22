#include "stepcast/formats/resolve_job.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/describe/job.h"
#include "stepcast/formats/megatron.h"

#include "tests/support/paths.h"

namespace stepcast::job_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Llama 3 8B on 64 GPUs as flags say it, and what comes out.
Job asked(std::vector<std::string> flags = {}) {
  Job job;
  job.model = "llama-3-8b";
  job.n_gpus = 64;
  const auto words = parse_megatron_flags(flags);
  EXPECT_TRUE(words.ok()) << words.error().message();
  if (words.ok()) job.settings = words->settings;
  return job;
}

ResolvedJob resolved(const Job& job) {
  auto result = resolve(job);
  EXPECT_TRUE(result.ok()) << result.error().message();
  return result.ok() ? std::move(*result) : ResolvedJob{};
}

std::string message_of(const Job& job) {
  const auto result = resolve(job);
  return result.ok() ? "no error" : result.error().message();
}

Job with(Job job, Framework framework) {
  job.framework = framework;
  return job;
}

TEST(Job, FillsInWhatNobodySaid) {
  const ResolvedJob job = resolved(asked());
  EXPECT_THAT(job.notes, ElementsAre("micro-batch size not given: 1", "sequence length not given: 8192",
                                     "computation type not given: bf16",
                                     "global batch not given: 64, one micro-batch per data-parallel rank",
                                     "framework not given: kernels and overlaps of Megatron-LM"));
  EXPECT_EQ(job.layout.degrees.data, 64);
  EXPECT_EQ(job.layout.batch.global_batch_sequences, 64);
  EXPECT_EQ(job.layout.layer.precision.compute, DType::bf16);
  EXPECT_EQ(job.layout.software.framework, Framework::megatron);
  Job full =
      asked({"--micro-batch-size", "2", "--global-batch-size", "128", "--seq-length", "4096", "--fp16"});
  full.framework = Framework::megatron;
  full.settings.framework_date = "2026-01";
  EXPECT_THAT(resolved(full).notes, IsEmpty());
}

// What is suggested runs.
TEST(Job, SuggestsDegreesThatDivideTheGpus) {
  const auto of = [](std::int64_t n_gpus, std::vector<std::string> flags) {
    Job job = asked(std::move(flags));
    job.n_gpus = n_gpus;
    return job;
  };
  EXPECT_THAT(message_of(of(8, {"--tensor-model-parallel-size", "3"})),
              HasSubstr("nearest that works: --tp 4"));
  EXPECT_THAT(message_of(of(64, {"--pipeline-model-parallel-size", "5"})),
              HasSubstr("nearest that works: --pp 4"));
  EXPECT_THAT(
      message_of(of(24, {"--tensor-model-parallel-size", "16", "--pipeline-model-parallel-size", "3"})),
      HasSubstr("nearest that works: --tp 8"));
  EXPECT_THAT(message_of(of(8, {"--tensor-model-parallel-size", "4", "--context-parallel-size", "3"})),
              HasSubstr("nearest that works: --cp 2"));
  EXPECT_TRUE(resolve(of(8, {"--tensor-model-parallel-size", "4", "--context-parallel-size", "2"})).ok());
}

// Tables of positions may have rows that no token uses.
TEST(Job, SequencesThatNobodyGaveAreAsLongAsTheModelCanRead) {
  Job job;
  job.model = "opt-1.3b";  // 2050 rows, of which two stand in front of the first token
  EXPECT_EQ(resolved(job).layout.batch.seq_len_tokens, 2048);
  job.settings.seq_len_tokens = 2049;
  EXPECT_THAT(message_of(job), HasSubstr("seq_len_tokens 2049 is above the 2048 learned positions"));
  job.settings.max_position = 4096;
  EXPECT_EQ(resolved(job).layout.batch.seq_len_tokens, 2049);
  Job roberta;
  roberta.model = (test::source_dir() / "tests/formats/configs/roberta-base.json").string();
  EXPECT_EQ(resolved(roberta).layout.batch.seq_len_tokens, 512);
}

TEST(Job, FsdpAndTorchtitanShardWhereNothingElseIsSaid) {
  for (const Framework framework : {Framework::fsdp, Framework::torchtitan}) {
    Job job = asked();
    job.framework = framework;
    EXPECT_EQ(resolved(job).layout.sharding.kind, Sharding::zero3);
    job.settings.zero_stage = 0;
    EXPECT_EQ(resolved(job).layout.sharding.kind, Sharding::none);
  }
}

TEST(Job, TorchtitanAndMaxtextRecomputeWhereNothingElseIsSaid) {
  for (const auto& [framework, usual] :
       {std::pair{Framework::torchtitan, Recompute::selective_ops}, {Framework::maxtext, Recompute::full}}) {
    const ResolvedJob job = resolved(with(asked(), framework));
    EXPECT_EQ(job.layout.layer.recompute.kind, usual);
    EXPECT_THAT(job.notes, Contains(HasSubstr("recomputation not given")));
    EXPECT_EQ(
        resolved(with(asked({"--recompute-granularity", "none"}), framework)).layout.layer.recompute.kind,
        Recompute::none);
  }
  EXPECT_EQ(resolved(with(asked(), Framework::fsdp)).layout.layer.recompute.kind, Recompute::none);
}

TEST(Job, SaysWhereABatchLooksLikeTokens) {
  Job job = asked();
  job.settings.global_batch_sequences = 131072;  // x 8192 tokens
  EXPECT_THAT(resolved(job).notes, Contains(HasSubstr("counts sequences, not tokens")));
}

TEST(Job, SettingsReachTheLayoutWithoutWords) {
  Job job = asked();
  job.settings.tensor = 4;
  job.settings.pipeline = 2;
  job.settings.recompute = Recompute::full;
  job.settings.sharding = Sharding::zero2;
  const ResolvedJob result = resolved(job);
  EXPECT_EQ(result.layout.degrees.tensor, 4);
  EXPECT_EQ(result.layout.degrees.data, 8);
  EXPECT_EQ(result.layout.layer.recompute.kind, Recompute::full);
  EXPECT_EQ(result.layout.sharding.kind, Sharding::zero2);
}

// The model below the framework: a preset has no say in what is fused, the framework none in shapes.
TEST(Job, FrameworkHoldsAgainstDefaults) {
  const Layout megatron = resolved(asked()).layout, nemo = resolved(with(asked(), Framework::nemo)).layout;
  EXPECT_FALSE(megatron.sharding.overlap_gradient_reduce);
  EXPECT_TRUE(nemo.sharding.overlap_gradient_reduce);
  EXPECT_EQ(megatron.layer.precision.gradients, DType::fp32);
  EXPECT_EQ(nemo.layer.precision.gradients, DType::bf16);
}

TEST(Job, ReleaseOfTheFrameworkIsTheNewestUnlessItsDateIsSaid) {
  EXPECT_THAT(resolved(with(asked(), Framework::fsdp)).notes,
              Contains(HasSubstr("release of fsdp not given")));
  const ResolvedJob old = resolved(with(asked({"--framework-date", "2023-06"}), Framework::fsdp));
  EXPECT_EQ(old.layout.software.date, "2023-06");
  EXPECT_THAT(old.notes, Not(Contains(HasSubstr("release of"))));
  for (const char* date : {"last year", "2023-13", "2023-00", "1023-06", "2023-6", ""})
    EXPECT_THAT(message_of(with(asked({"--framework-date", date}), Framework::fsdp)),
                AllOf(HasSubstr("--framework-date"), HasSubstr("as 2024 or 2024-05")));
}

// A framework that is named, whichever, takes nothing back of what flags say.
TEST(Job, FlagsHoldAgainstTheFramework) {
  for (const Framework framework : {Framework::megatron, Framework::nemo, Framework::torchtitan,
                                    Framework::fsdp, Framework::deepspeed, Framework::libai}) {
    SCOPED_TRACE(to_string(framework));
    const Layout overlapped =
        resolved(
            with(asked({"--overlap-grad-reduce", "--overlap-param-gather", "--tp-comm-overlap"}), framework))
            .layout;
    EXPECT_TRUE(overlapped.sharding.overlap_gradient_reduce);
    EXPECT_TRUE(overlapped.sharding.overlap_parameter_gather);
    EXPECT_TRUE(overlapped.layer.overlap.tensor_parallel);
    EXPECT_FALSE(resolved(with(asked({"--sequence-parallel", "--no-tp-comm-overlap"}), framework))
                     .layout.layer.overlap.tensor_parallel);
    const Layout half =
        resolved(with(asked({"--fp16", "--accumulate-allreduce-grads-in-fp32"}), framework)).layout;
    EXPECT_EQ(half.layer.precision.compute, DType::fp16);
    EXPECT_EQ(half.layer.precision.gradients, DType::fp32);
    EXPECT_EQ(half.layer.precision.reduction, DType::fp32);
    const Layout fp8 =
        resolved(
            with(asked({"--bf16", "--fp8-format", "hybrid", "--fp8-recipe", "blockwise", "--no-fp8-wgrad"}),
                 framework))
            .layout;
    EXPECT_EQ(fp8.layer.precision.compute, DType::fp8);
    EXPECT_EQ(fp8.layer.precision.fp8.scaling, Fp8Scaling::blockwise);
    EXPECT_FALSE(fp8.layer.precision.fp8.weight_gradients);
    const Layout fused =
        resolved(with(asked({"--cross-entropy-loss-fusion", "--no-rope-fusion"}), framework)).layout;
    EXPECT_TRUE(fused.layer.fused.cross_entropy);
    EXPECT_FALSE(fused.layer.fused.rotary);
  }
}

TEST(Job, FlagsChangeAGivenModel) {
  EXPECT_EQ(resolved(asked({"--num-layers", "16"})).model.n_layers, 16);
  EXPECT_EQ(resolved(asked({"--num-layers", "16"})).model.hidden_size, 4096);
}

constexpr const char* kLine =
    "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --tensor-model-parallel-size 2 "
    "--micro-batch-size 2 "
    "--global-batch-size 64 --seq-length 4096 --bf16 --use-distributed-optimizer --recompute-activations "
    "--rampup-batch-size 16 16 100";

Job with_line(Job job) {
  job.n_gpus.reset();
  job.command_line = kLine;
  return job;
}

TEST(Job, CommandLineHoldsAgainstTheFramework) {
  const Layout layout = resolved(with(with_line(asked()), Framework::nemo)).layout;
  EXPECT_TRUE(layout.sharding.overlap_gradient_reduce);  // a habit of NeMo: the line does not say
  EXPECT_EQ(layout.sharding.kind, Sharding::zero1);
  EXPECT_EQ(layout.layer.recompute.kind, Recompute::selective);
  EXPECT_EQ(layout.software.framework, Framework::nemo);
}

TEST(Job, FlagsHoldAgainstTheCommandLine) {
  const ResolvedJob plain = resolved(with_line(asked()));
  EXPECT_EQ(plain.layout.degrees.data, 16);
  EXPECT_THAT(plain.notes, IsEmpty());
  EXPECT_THAT(plain.not_modelled, ElementsAre("--rampup-batch-size 16 16 100"));

  const ResolvedJob changed = resolved(
      with_line(asked({"--tensor-model-parallel-size", "4", "--global-batch-size", "128", "--fp16",
                       "--recompute-granularity", "full", "--data-parallel-sharding-strategy", "no_shard"})));
  EXPECT_EQ(changed.layout.degrees.tensor, 4);
  EXPECT_EQ(changed.layout.degrees.data, 8);  // 32 GPUs of the launcher
  EXPECT_EQ(changed.layout.batch.micro_batch_sequences, 2);
  EXPECT_EQ(changed.layout.batch.global_batch_sequences, 128);
  EXPECT_EQ(changed.layout.layer.precision.compute, DType::fp16);
  EXPECT_EQ(changed.layout.layer.recompute.kind, Recompute::full);
  EXPECT_EQ(changed.layout.sharding.kind, Sharding::none);
  Job more = with_line(asked({"--global-batch-size", "256"}));
  more.n_gpus = 128;
  EXPECT_EQ(resolved(more).layout.degrees.data, 64);
}

Job with_torchtitan(Job job) {
  job.torchtitan = ConfigText{
      "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nlocal_batch_size = 2\nseq_len = 4096\n"
      "[parallelism]\ntensor_parallel_degree = 2\n[activation_checkpoint]\nmode = 'full'\n",
      "job.toml"};
  return job;
}

TEST(Job, FlagsHoldAgainstATorchTitanConfig) {
  const Layout plain = resolved(with_torchtitan(asked())).layout;
  EXPECT_EQ(plain.degrees.tensor, 2);
  EXPECT_EQ(plain.degrees.data, 32);
  EXPECT_EQ(plain.batch.micro_batch_sequences, 2);
  EXPECT_EQ(plain.layer.recompute.kind, Recompute::full);
  EXPECT_FALSE(plain.layer.fused.rotary);  // a habit

  const Layout changed =
      resolved(with_torchtitan(asked({"--tensor-model-parallel-size", "4", "--micro-batch-size", "1",
                                      "--seq-length", "8192", "--fp16", "--recompute-granularity",
                                      "selective", "--overlap-param-gather"})))
          .layout;
  EXPECT_EQ(changed.degrees.tensor, 4);
  EXPECT_EQ(changed.degrees.data, 16);
  EXPECT_EQ(changed.batch.micro_batch_sequences, 1);
  EXPECT_EQ(changed.batch.global_batch_sequences, 16);
  EXPECT_EQ(changed.batch.seq_len_tokens, 8192);
  EXPECT_EQ(changed.layer.precision.compute, DType::fp16);
  EXPECT_EQ(changed.layer.recompute.kind, Recompute::selective);
  EXPECT_TRUE(changed.sharding.overlap_parameter_gather);
}

TEST(Job, RefusesWhatATorchTitanConfigCannotTake) {
  EXPECT_THAT(message_of(with_torchtitan(asked({"--num-layers-per-virtual-pipeline-stage", "2"}))),
              AllOf(HasSubstr("--num-layers-per-virtual-pipeline-stage"), HasSubstr("TorchTitan config")));
  EXPECT_THAT(message_of(with(with_torchtitan(asked()), Framework::nemo)),
              AllOf(HasSubstr("--framework"), HasSubstr("nemo")));
  EXPECT_THAT(message_of(with_torchtitan(with_line(asked()))),
              AllOf(HasSubstr("--torchtitan"), HasSubstr("together with --command-line")));
}

Job with_deepspeed(Job job) {
  job.deepspeed = ConfigText{R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
    "bf16": {"enabled": true}, "gradient_clipping": 1.0, "zero_optimization": {"stage": 2, "overlap_comm": false}})",
                             "ds.json"};
  return job;
}

TEST(Job, DeepSpeedConfigHoldsAgainstItsHabitsAndFlagsAgainstIt) {
  const ResolvedJob plain = resolved(with_deepspeed(asked()));
  EXPECT_EQ(plain.layout.software.framework, Framework::deepspeed);
  EXPECT_EQ(plain.layout.batch.global_batch_sequences, 2 * 4 * 64);
  EXPECT_EQ(plain.layout.sharding.kind, Sharding::zero2);
  EXPECT_FALSE(plain.layout.sharding.overlap_gradient_reduce);                 // the file says so
  EXPECT_FALSE(plain.layout.layer.overlap.sequence_parallel_weight_gradient);  // a habit
  EXPECT_EQ(plain.layout.layer.precision.reduction, DType::bf16);
  EXPECT_THAT(plain.notes,
              ElementsAre("sequence length not given: 8192", HasSubstr("without fused kernels")));

  const Layout changed =
      resolved(with_deepspeed(asked({"--micro-batch-size", "1", "--global-batch-size", "256", "--fp16",
                                     "--overlap-grad-reduce", "--clip-grad", "0", "--zero-stage", "1"})))
          .layout;
  EXPECT_EQ(changed.batch.micro_batch_sequences, 1);
  EXPECT_EQ(changed.batch.global_batch_sequences, 256);
  EXPECT_EQ(changed.layer.precision.compute, DType::fp16);
  EXPECT_TRUE(changed.sharding.overlap_gradient_reduce);
  EXPECT_FALSE(changed.optimizer.gradient_clip);
  EXPECT_EQ(changed.sharding.kind, Sharding::zero1);
  EXPECT_EQ(resolved(with(with_deepspeed(asked()), Framework::megatron)).layout.software.framework,
            Framework::megatron);
}

TEST(Job, RefusesNumbersThatCannotBe) {
  Job job = asked();
  job.settings.micro_batch_sequences = -1;
  EXPECT_THAT(message_of(job), AllOf(HasSubstr("--micro-batch-size"), HasSubstr("found `-1`")));
  job = asked();
  job.settings.tensor = 0;
  EXPECT_THAT(message_of(job), AllOf(HasSubstr("--tensor-model-parallel-size"), HasSubstr("1 to 1e6")));
  job = asked();
  job.n_gpus = 60;
  job.settings.tensor = 8;
  EXPECT_THAT(message_of(job), AllOf(HasSubstr("60 GPUs"), HasSubstr("nearest that works: --tp 4")));
  EXPECT_THAT(message_of(Job{}), HasSubstr("no model is named"));
}

// Settings of one source replace the other ways to say the same thing in the one below.
TEST(Job, OverReplacesWaysToSayOneThingTogether) {
  JobSettings lower, upper;
  lower.zero_stage = 3;
  lower.tensor = 2;
  lower.recompute_attention = true;
  upper.distributed_optimizer = true;
  upper.pipeline = 4;
  const JobSettings both = over(lower, upper);
  EXPECT_FALSE(both.zero_stage.has_value());
  EXPECT_EQ(both.distributed_optimizer, true);
  EXPECT_EQ(both.tensor, 2);
  EXPECT_EQ(both.pipeline, 4);
  EXPECT_EQ(both.recompute_attention, true);
  EXPECT_EQ(over(lower, JobSettings{}), lower);
  EXPECT_EQ(over(JobSettings{}, upper), upper);
}

}  // namespace
}  // namespace stepcast::job_test

#include "stepcast/rollout/rl_config.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"

#include "tests/support/fails_with.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::rl_config_test {
namespace {

using test::FailsWith;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kNemoRl[] = R"(
grpo:
  num_prompts_per_step: 64
  num_generations_per_prompt: 32
  async_grpo: {enabled: true, max_trajectory_age_steps: 2}
policy:
  model_name: Qwen/Qwen3-30B-A3B
  train_global_batch_size: 512
  train_micro_batch_size: 1
  max_total_sequence_length: 4096
  precision: bfloat16
  megatron_cfg:
    enabled: true
    expert_model_parallel_size: 8
    context_parallel_size: 2
    activation_checkpointing: true
  generation:
    max_new_tokens: ${policy.max_total_sequence_length}
    vllm_cfg: {tensor_parallel_size: 2, gpu_memory_utilization: 0.7, precision: fp8}
    colocated: {enabled: false, resources: {num_nodes: 1}}
cluster: {gpus_per_node: 8, num_nodes: 4}
)";

constexpr char kVerl[] = R"(
set -x
python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_batch_size=1024 data.max_prompt_length=512 data.max_response_length=1024 \
    actor_rollout_ref.model.path=Qwen/Qwen3-8B \
    actor_rollout_ref.actor.ppo_mini_batch_size=256 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=4 \
    actor_rollout_ref.rollout.n=5 \
    trainer.n_gpus_per_node=8 trainer.nnodes=2 $@
)";

constexpr char kOpenRlhf[] =
    "ray job submit --address=http://127.0.0.1:8265 -- python3 -m openrlhf.cli.train_ppo_ray "
    "--actor_num_nodes 2 --actor_num_gpus_per_node 8 --vllm_num_engines 4 --vllm_tensor_parallel_size 2 "
    "--async_train --pretrain meta-llama/Llama-3.1-8B-Instruct --train_batch_size 128 --rollout_batch_size "
    "1024 "
    "--n_samples_per_prompt 4 --max_len 2048 --zero_stage 3 --advantage_estimator group_norm "
    "--packing_samples --gradient_checkpointing";

Result<RlQuestion> read(Job job, std::string lengths, std::vector<std::string>& notes) {
  RlQuestion said;
  said.job = std::move(job);
  said.settings.lengths = std::move(lengths);
  return with_rl_config(said, notes);
}
Job command_line(const std::string& text) {
  Job job;
  job.command_line = text;
  return job;
}
Job yaml(std::string text) { return {.config = ConfigText{std::move(text), "grpo.yaml"}}; }

TEST(RlConfig, OfNemoRl) {
  ASSERT_TRUE(is_rl_config(yaml(kNemoRl)));
  std::vector<std::string> notes;
  const Result<RlQuestion> q = read(yaml(kNemoRl), "mean=3200", notes);
  ASSERT_TRUE(q.ok()) << q.error().message();
  EXPECT_EQ(q->job.model, "qwen3-30b-a3b");
  EXPECT_EQ(q->job.n_gpus, 32);
  EXPECT_EQ(q->job.framework, Framework::nemo);
  const JobSettings& s = q->job.settings;
  EXPECT_EQ(s.expert, 8);
  EXPECT_EQ(s.context, 2);
  EXPECT_EQ(s.tensor, std::nullopt);
  EXPECT_EQ(s.global_batch_sequences, 512);
  EXPECT_EQ(s.recompute, Recompute::full);
  EXPECT_EQ(s.distributed_optimizer, true);
  const RlSettings& r = q->settings;
  EXPECT_EQ(r.algorithm, "grpo");
  EXPECT_EQ(r.prompts, 64);
  EXPECT_EQ(r.generations, 32);
  EXPECT_EQ(r.policy, "off:2");
  EXPECT_EQ(r.generation_gpus, 8);  // one node
  EXPECT_EQ(r.generation_tensor, 2);
  EXPECT_EQ(r.generation_memory_share, 0.7);
  EXPECT_EQ(r.generation_dtype, "fp8");
  EXPECT_EQ(r.lengths, "mean=3200,max=4096");
  EXPECT_THAT(notes, Contains("read as settings of NeMo-RL"));
}

// What scores is known by its name at a hub, or taken for a model as large as the policy.
TEST(RlConfig, OfARewardModel) {
  std::vector<std::string> notes;
  const auto of = [&](const char* reward) {
    return read(command_line(std::string{kOpenRlhf} + " --reward_pretrain " + reward), "mean=900", notes);
  };
  const Result<RlQuestion> known = of("Qwen/Qwen3-8B"), unknown = of("OpenRLHF/Llama-3-8b-rm-mixture");
  ASSERT_TRUE(known.ok()) << known.error().message();
  ASSERT_TRUE(unknown.ok()) << unknown.error().message();
  EXPECT_EQ(known->settings.reward_model, "qwen3-8b");
  EXPECT_EQ(unknown->settings.reward_model, "llama-3.1-8b");
  EXPECT_THAT(notes, Contains(testing::HasSubstr("as large as the policy")));
}

TEST(RlConfig, OfVerl) {
  std::vector<std::string> notes;
  const Result<RlQuestion> q = read({.command_line = kVerl}, "mean=768", notes);
  ASSERT_TRUE(q.ok()) << q.error().message();
  EXPECT_EQ(q->job.model, "qwen3-8b");
  EXPECT_EQ(q->job.n_gpus, 16);
  EXPECT_EQ(q->job.framework, Framework::fsdp);
  EXPECT_EQ(q->job.settings.global_batch_sequences, 256 * 5);  // counted in prompts there
  EXPECT_EQ(q->job.settings.micro_batch_sequences, 8);         // 16 answers of half the longest
  EXPECT_EQ(q->job.settings.recompute, Recompute::full);       // as verl has it
  EXPECT_EQ(q->settings.algorithm, "grpo");
  EXPECT_EQ(q->settings.prompts, 1024);
  EXPECT_EQ(q->settings.generations, 5);
  EXPECT_EQ(q->settings.policy, "on");
  EXPECT_EQ(q->settings.generation_tensor, 4);
  EXPECT_EQ(q->settings.lengths, "mean=768,max=1536");
}

TEST(RlConfig, OfOpenRlhf) {
  std::vector<std::string> notes;
  const Result<RlQuestion> q = read({.command_line = kOpenRlhf}, "mean=900", notes);
  ASSERT_TRUE(q.ok()) << q.error().message();
  EXPECT_EQ(q->job.model, "llama-3.1-8b");
  EXPECT_EQ(q->job.n_gpus, 16 + 8);  // the engines have GPUs of their own
  EXPECT_EQ(q->job.settings.zero_stage, 3);
  EXPECT_EQ(q->job.settings.micro_batch_sequences, std::nullopt);
  EXPECT_EQ(q->settings.algorithm, "grpo");
  EXPECT_EQ(q->settings.policy, "off:1");
  EXPECT_EQ(q->settings.generation_gpus, 8);
  EXPECT_EQ(q->settings.lengths, "mean=900,max=2048");
}

TEST(RlConfig, WhatIsSaidIsStronger) {
  std::vector<std::string> notes;
  RlQuestion said;
  said.job = yaml(kNemoRl);
  said.job.n_gpus = 64;
  said.job.settings.expert = 4;
  said.settings = {.prompts = 16, .lengths = "mean=1000,max=8192", .policy = "on"};
  const Result<RlQuestion> q = with_rl_config(said, notes);
  ASSERT_TRUE(q.ok()) << q.error().message();
  EXPECT_EQ(q->job.n_gpus, 64);
  EXPECT_EQ(q->job.settings.expert, 4);
  EXPECT_EQ(q->job.settings.context, 2);
  EXPECT_EQ(q->settings.prompts, 16);
  EXPECT_EQ(q->settings.lengths, "mean=1000,max=8192");
  EXPECT_EQ(q->settings.policy, "on");
  EXPECT_EQ(q->settings.generation_gpus, std::nullopt);  // the pool was that of the other policy
}

TEST(RlConfig, FilesThatDefaultsNameStandBelow) {
  const test::TemporaryFolder folder;
  std::ofstream{folder.path() / "base.yaml"}
      << "grpo: {num_prompts_per_step: 32, num_generations_per_prompt: 16}\n"
         "policy: {max_total_sequence_length: 512}\n";
  const std::string own =
      "defaults: base.yaml\ngrpo: {num_prompts_per_step: 8}\npolicy: {model_name: Qwen/Qwen3-8B}\n";
  Job job;
  job.config = ConfigText{own, (folder.path() / "own.yaml").string()};
  std::vector<std::string> notes;
  const Result<RlQuestion> q = read(job, "mean=300", notes);
  ASSERT_TRUE(q.ok()) << q.error().message();
  EXPECT_EQ(q->settings.prompts, 8);
  EXPECT_EQ(q->settings.generations, 16);
  EXPECT_EQ(q->settings.lengths, "mean=300,max=512");
  job.config->name = "elsewhere/own.yaml";
  notes.clear();
  EXPECT_FALSE(read(job, "mean=300,max=512", notes)->settings.generations.has_value());
  EXPECT_THAT(notes, Contains(HasSubstr("base.yaml is not here")));
}

TEST(RlConfig, SaysWhatIsMissing) {
  std::vector<std::string> notes;
  EXPECT_THAT(read(yaml(kNemoRl), "", notes), FailsWith("add --lengths mean=TOKENS,max=4096"));
  EXPECT_THAT(read(yaml("model: x\n"), "mean=3", notes),
              FailsWith("expected a config or command line of NeMo-RL"));
  EXPECT_THAT(read(yaml("grpo: {num_prompts_per_step: many}\n"), "mean=3", notes),
              FailsWith("grpo.num_prompts_per_step: found `many`, expected a number"));
  EXPECT_THAT(read(yaml("grpo: {num_prompts_per_step: 2.5}\n"), "mean=3", notes),
              FailsWith("expected a whole number"));
  EXPECT_THAT(read(yaml("grpo: {}\npolicy: {model_name: me/Mine-9B}\ngrpo: {num_prompts_per_step: 1}\n"),
                   "mean=3", notes),
              FailsWith("give its config.json with --model"));
  EXPECT_FALSE(is_rl_config(yaml("base_model: x\nmicro_batch_size: 1\n")));
  EXPECT_FALSE(is_rl_config({.command_line = "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 64"}));
}

TEST(RlConfig, NamesKeysThatAreSlips) {
  std::vector<std::string> notes;
  std::string text = kNemoRl;
  text.replace(text.find("train_micro_batch_size"), 22, "train_micro_batch_sise");
  ASSERT_TRUE(read(yaml(text), "mean=3200", notes).ok());
  EXPECT_THAT(notes, Contains(HasSubstr("did you mean `policy.train_micro_batch_size`?")));
}

TEST(RlConfig, GivesTheAnswerOfItsFlags) {
  const Result<Platform> platform = load_platform("dgx-h100");
  ASSERT_TRUE(platform.ok());
  StepModel steps{*platform};
  RlQuestion by_config;
  by_config.job = yaml(kNemoRl);
  by_config.settings.lengths = "mean=3200";
  RlQuestion by_flags;
  by_flags.job = {.model = "qwen3-30b-a3b", .n_gpus = 32, .framework = Framework::nemo};
  by_flags.job.settings = {.context = 2,
                           .expert = 8,
                           .global_batch_sequences = 512,
                           .dtype = DType::bf16,
                           .recompute = Recompute::full,
                           .distributed_optimizer = true};
  by_flags.settings = {.prompts = 64,
                       .generations = 32,
                       .lengths = "mean=3200,max=4096",
                       .policy = "off:2",
                       .generation_gpus = 8,
                       .generation_tensor = 2,
                       .generation_dtype = "fp8",
                       .generation_memory_share = 0.7};
  const Result<RlAnswer> one = rl_step(by_config, steps), other = rl_step(by_flags, steps);
  ASSERT_TRUE(one.ok()) << one.error().message();
  ASSERT_TRUE(other.ok()) << other.error().message();
  EXPECT_DOUBLE_EQ(one->forecast.step_s, other->forecast.step_s);
}

}  // namespace
}  // namespace stepcast::rl_config_test

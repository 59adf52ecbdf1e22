#include "stepcast/rollout/rl_config.h"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/platform/platform_file.h"

#include "tests/support/fails_with.h"
#include "tests/support/paths.h"
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
  EXPECT_THAT(notes, Contains(HasSubstr("base.yaml does not exist")));
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

struct Script {
  const char* file;
  std::int64_t gpus, tensor, pipeline, context, expert, engine, update;
  Framework framework;
};
constexpr Script kScripts[] = {
    {"verl_megatron_arrays.sh", 32, 2, 2, 2, 8, 4, 128 * 16, Framework::megatron},
    {"verl_dapo_ray.sh", 128, 1, 1, 8, 1, 4, 32 * 16, Framework::fsdp},
    {"verl_lora_slurm.sh", 16, 1, 1, 1, 1, 1, 64, Framework::fsdp},
    {"openrlhf_document.sh", 16, 1, 1, 2, 1, 2, 128, Framework::deepspeed},
    {"nemo_rl_overrides.sh", 32, 2, 1, 1, 8, 4, 512, Framework::nemo},
};

std::string script(const char* file) {
  return read_file(test::source_dir() / "tests/rollout/scripts" / file).value();
}

class RlScript : public ::testing::TestWithParam<Script> {};

TEST_P(RlScript, IsReadAsItIsSpread) {
  const Script& e = GetParam();
  std::vector<std::string> notes;
  const std::string text = script(e.file);
  const Result<RlQuestion> q = read(command_line(text), "mean=300", notes);
  ASSERT_TRUE(q.ok()) << q.error().message();
  const JobSettings& s = q->job.settings;
  EXPECT_EQ(q->job.n_gpus, e.gpus);
  EXPECT_EQ(q->job.framework, e.framework);
  EXPECT_EQ(s.tensor.value_or(1), e.tensor);
  EXPECT_EQ(s.pipeline.value_or(1), e.pipeline);
  EXPECT_EQ(s.context.value_or(1), e.context);
  EXPECT_EQ(s.expert.value_or(1), e.expert);
  EXPECT_EQ(q->settings.generation_tensor, e.engine);
  EXPECT_EQ(s.global_batch_sequences, e.update);
}

INSTANTIATE_TEST_SUITE_P(All, RlScript, ::testing::ValuesIn(kScripts), [](const auto& info) {
  const std::string file = info.param.file;
  return file.substr(0, file.find('.'));
});

TEST(RlConfig, ReadsWhatAScriptSaysBeside) {
  std::vector<std::string> notes;
  const RlQuestion dapo = read(command_line(script("verl_dapo_ray.sh")), "mean=4000", notes).value();
  EXPECT_EQ(dapo.job.model, "qwen2.5-32b");
  EXPECT_EQ(dapo.settings.algorithm, "dapo");
  EXPECT_EQ(dapo.settings.oversampling, 3);
  EXPECT_EQ(dapo.job.settings.weight_copies, 128 / 32);
  EXPECT_EQ(dapo.job.settings.micro_batch_sequences, 8);  // a row of each of the GPUs of a sequence
  EXPECT_THAT(dapo.job.not_modelled,
              testing::ElementsAre("actor_rollout_ref.actor.fsdp_config.param_offload=True"));
  const RlQuestion lora = read(command_line(script("verl_lora_slurm.sh")), "mean=512", notes).value();
  EXPECT_EQ(lora.settings.algorithm, "ppo");
  EXPECT_EQ(lora.job.settings.lora_rank, 64);
  EXPECT_EQ(lora.job.settings.lora_targets, "linear_qkv");
  EXPECT_EQ(lora.job.settings.reference_model, true);
  EXPECT_EQ(lora.job.settings.micro_batch_sequences, 1);  // 32 of 16 GPUs, of half the longest each
  EXPECT_THAT(lora.job.not_modelled, testing::IsEmpty());
  const RlQuestion engine = read(command_line(script("verl_megatron_arrays.sh")), "mean=900", notes).value();
  EXPECT_EQ(engine.job.model, "qwen3-30b-a3b");
  EXPECT_EQ(engine.job.settings.recompute, Recompute::full);
  EXPECT_EQ(engine.job.settings.recompute_layers, 1);
  EXPECT_EQ(engine.job.settings.reference_model, false);
  EXPECT_THAT(engine.job.not_modelled, testing::IsEmpty());
  const RlQuestion open = read(command_line(script("openrlhf_document.sh")), "mean=900", notes).value();
  EXPECT_EQ(open.job.model, "llama-3-8b");
  EXPECT_EQ(open.job.settings.lora_targets, "linear_qkv");
  EXPECT_THAT(open.job.not_modelled, testing::ElementsAre("padding, without packing_samples",
                                                          "load_in_4bit=true", "ring_head_stride=2"));
  const RlQuestion nemo = read(command_line(script("nemo_rl_overrides.sh")), "mean=900", notes).value();
  EXPECT_EQ(nemo.job.settings.fuse_permutation, true);
  EXPECT_EQ(nemo.settings.prompts, 32);
  EXPECT_EQ(nemo.job.settings.micro_batch_sequences, 4);
  EXPECT_THAT(
      notes,
      Contains(HasSubstr("grpo_math_1B.yaml does not exist: the version shipped with NeMo-RL is used")));
}

TEST(RlConfig, ModelsAreKnownByTheirPaths) {
  const auto model_of = [](const std::string& path) {
    std::string text = kVerl;
    text.replace(text.find("Qwen/Qwen3-8B"), 13, path);
    std::vector<std::string> notes;
    const Result<RlQuestion> q = read(command_line(text), "mean=700", notes);
    return q ? q->job.model : std::string{"none"};
  };
  EXPECT_EQ(model_of("$HOME/models/Qwen2-7B-Instruct"), "qwen2.5-7b");
  EXPECT_EQ(model_of("${DATA:-${HOME}/verl}/Qwen2.5-Math-7B/"), "qwen2.5-7b");
  EXPECT_EQ(model_of("~/hub/models--meta-llama--Llama-3.1-8B-Instruct/snapshots/5206a32e"), "llama-3.1-8b");
  EXPECT_EQ(model_of("$PWD/checkpoint/multiturn-sft-qwen-2.5-32b-instruct/global_step_372"), "qwen2.5-32b");
  EXPECT_EQ(model_of("$MODEL_PATH"), "none");
  EXPECT_EQ(model_of("/data/my-model"), "none");
}

TEST(RlConfig, ClusterVariablesAreNoNumbers) {
  std::string text = kVerl;
  text.replace(text.find("nnodes=2"), 8, "nnodes=$NNODES");
  std::vector<std::string> notes;
  EXPECT_EQ(read(command_line(text), "mean=768", notes)->job.n_gpus, std::nullopt);
  text.replace(text.find("rollout.n=5"), 11, "rollout.n=$N");
  EXPECT_THAT(read(command_line(text), "mean=768", notes), FailsWith("rollout.n: found `$N`"));
}

// One key more, and either the forecast is another one or the key is listed.
TEST(RlConfig, DropsNoKey) {
  const Result<Platform> platform = load_platform("dgx-h100");
  ASSERT_TRUE(platform.ok());
  const StepModel steps{*platform};
  const std::string fsdp = kVerl, megatron = fsdp.substr(0, fsdp.find(" $@")) + R"( \
    actor_rollout_ref.actor.strategy=megatron actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2)";
  const std::string a = " actor_rollout_ref.", actor = a + "actor.", rollout = a + "rollout.",
                    cfg = actor + "megatron.";
  const std::string verl = fsdp.substr(0, fsdp.find(" $@"));
  const std::pair<const std::string*, std::vector<std::string>> kinds[] = {
      {&verl,
       {actor + "strategy=megatron",
        actor + "strategy=fsdp2",
        " model_engine=megatron",
        " --config-name=ppo_megatron_trainer",
        " --config-name=my_own_trainer",
        actor + "ulysses_sequence_parallel_size=2",
        actor + "fsdp_config.param_offload=True",
        actor + "fsdp_config.optimizer_offload=True",
        actor + "fsdp_config.fsdp_size=8",
        actor + "fsdp_config.fsdp_size=5",
        actor + "fsdp_config.reshard_after_forward=False",
        actor + "fsdp_config.forward_prefetch=True",
        actor + "ppo_mini_batch_size=512",
        actor + "ppo_micro_batch_size_per_gpu=2",
        actor + "ppo_epochs=2",
        actor + "use_dynamic_bsz=True",
        actor + "use_kl_loss=True",
        actor + "use_torch_compile=False",
        actor + "entropy_checkpointing=True",
        a + "model.enable_gradient_checkpointing=False",
        a + "model.use_remove_padding=False",
        a + "model.use_fused_kernels=True",
        a + "model.lora_rank=32",
        a + "model.path=Qwen/Qwen3-14B",
        a + "ref.fsdp_config.param_offload=True",
        a + "ref.log_prob_micro_batch_size_per_gpu=64",
        rollout + "n=8",
        rollout + "name=sglang",
        rollout + "mode=async",
        rollout + "tensor_model_parallel_size=1",
        rollout + "gpu_memory_utilization=0.2",
        rollout + "enforce_eager=True",
        rollout + "free_cache_engine=False",
        rollout + "max_num_seqs=64",
        rollout + "data_parallel_size=2",
        rollout + "multi_turn.enable=True",
        rollout + "quantization=fp8",
        rollout + "a_key_of_tomorrow=1",
        " algorithm.adv_estimator=gae",
        " algorithm.use_kl_in_reward=True",
        " algorithm.filter_groups.enable=True",
        " data.train_batch_size=512",
        " data.max_response_length=2048",
        " data.max_prompt_length=1024",
        " data.gen_batch_size=2048",
        " critic.model.path=Qwen/Qwen3-0.6B",
        " critic.ppo_micro_batch_size_per_gpu=2",
        " reward_model.enable=True",
        " trainer.n_gpus_per_node=4",
        " trainer.nnodes=4",
        " trainer.test_freq=5",
        " trainer.balance_batch=False"}},
      {&megatron,
       {cfg + "tensor_model_parallel_size=4", cfg + "pipeline_model_parallel_size=2",
        cfg + "context_parallel_size=2", cfg + "param_offload=True", cfg + "sequence_parallel=False",
        cfg + "override_transformer_config.recompute_granularity=selective",
        cfg + "override_transformer_config.apply_rope_fusion=False",
        cfg + "override_transformer_config.a_key_of_tomorrow=True",
        cfg + "override_ddp_config.overlap_grad_reduce=True",
        actor + "optim.override_optimizer_config.optimizer_offload_fraction=1"}}};
  const auto answer = [&](const std::string& text) {
    RlQuestion question;
    question.job = command_line(text);
    question.settings.lengths = "mean=700";
    const Result<RlAnswer> one = rl_step(question, steps);
    EXPECT_TRUE(one.ok()) << one.error().message() << text.substr(text.rfind(' '));
    if (!one) return std::string{};
    const RlForecast& f = one->forecast;
    std::string said = fmt::format("{} GPUs: {} {} {} {} {}", f.n_gpus, f.step_s, f.parts.generate_s(),
                                   f.memory.training_peak_GiB, f.model, f.split.training_layout);
    for (const std::string& note : f.notes)
      if (note.starts_with("not modelled") || note.find("does not exist") != std::string::npos) said += note;
    return said;
  };
  for (const auto& [base, changes] : kinds) {
    const auto before = answer(*base);
    for (const std::string& change : changes) EXPECT_NE(answer(*base + change), before) << change;
  }
  const std::string nemo = script("nemo_rl_overrides.sh");
  const std::string head = nemo.substr(0, nemo.find(" logger."));
  const auto plain = answer(head);
  for (const char* change : {"grpo.num_prompts_per_step=64",
                             "grpo.num_generations_per_prompt=32",
                             "grpo.use_dynamic_sampling=true",
                             "grpo.async_grpo.enabled=true",
                             "grpo.max_rollout_turns=3",
                             "grpo.skip_reference_policy_logprobs_calculation=true",
                             "policy.train_global_batch_size=256",
                             "policy.train_micro_batch_size=1",
                             "policy.logprob_batch_size=1",
                             "policy.max_total_sequence_length=8192",
                             "policy.megatron_cfg.enabled=False",
                             "policy.megatron_cfg.tensor_model_parallel_size=4",
                             "policy.megatron_cfg.pipeline_model_parallel_size=2",
                             "policy.megatron_cfg.context_parallel_size=2",
                             "policy.megatron_cfg.expert_model_parallel_size=4",
                             "policy.megatron_cfg.activation_checkpointing=true",
                             "policy.megatron_cfg.sequence_parallel=true",
                             "policy.megatron_cfg.moe_permute_fusion=false",
                             "policy.megatron_cfg.fp8_cfg.enabled=true",
                             "policy.megatron_cfg.peft.enabled=true",
                             "policy.megatron_cfg.defer_fp32_logits=true",
                             "policy.megatron_cfg.empty_unused_memory_level=1",
                             "policy.megatron_cfg.optimizer.use_distributed_optimizer=false",
                             "policy.megatron_cfg.optimizer.optimizer_cpu_offload=true",
                             "policy.megatron_cfg.distributed_data_parallel_config.overlap_grad_reduce=false",
                             "policy.megatron_cfg.distributed_data_parallel_config.grad_reduce_in_fp32=true",
                             "policy.sequence_packing.enabled=false",
                             "policy.sequence_packing.train_mb_tokens=4096",
                             "policy.dynamic_batching.enabled=true",
                             "policy.generation.backend=megatron",
                             "policy.generation.vllm_cfg.tensor_parallel_size=2",
                             "policy.generation.vllm_cfg.enforce_eager=true",
                             "policy.generation.vllm_cfg.precision=fp8",
                             "policy.generation.vllm_cfg.async_engine=true",
                             "policy.generation.colocated.enabled=false",
                             "cluster.num_nodes=2",
                             "policy.a_key_of_tomorrow=1"})
    EXPECT_NE(answer(head + " " + change), plain) << change;
  const auto open = answer(kOpenRlhf);
  for (const char* change : {" --zero_stage 2",
                             " --adam_offload",
                             " --ring_attn_size 2",
                             " --ds_tensor_parallel_size 2",
                             " --vllm_tensor_parallel_size 1",
                             " --vllm_num_engines 2",
                             " --enforce_eager",
                             " --lora_rank 16",
                             " --load_in_4bit",
                             " --colocate_all_models",
                             " --train_batch_size 256",
                             " --rollout_batch_size 512",
                             " --n_samples_per_prompt 8",
                             " --init_kl_coef 0",
                             " --max_epochs 2",
                             " --micro_rollout_batch_size 8",
                             " --zpg 8",
                             " --critic_pretrain Qwen/Qwen3-8B",
                             " --ref_num_gpus_per_node 4",
                             " --max_len 4096"})
    EXPECT_NE(answer(std::string{kOpenRlhf} + change), open) << change;
}

// What changes no time is not listed.
TEST(RlConfig, ListsNothingThatTakesNoTime) {
  std::vector<std::string> notes;
  const std::string verl = std::string{kVerl}.substr(0, std::string_view{kVerl}.find(" $@"));
  const RlQuestion q =
      read(command_line(verl +
                        " actor_rollout_ref.actor.optim.lr=1e-6 trainer.logger=['console'] "
                        "trainer.project_name=x data.train_files=$HOME/a.parquet algorithm.kl_ctrl.kl_coef=0 "
                        "actor_rollout_ref.actor.fsdp_config.param_offload=False trainer.save_freq=-1 "
                        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=16 "
                        "actor_rollout_ref.rollout.temperature=1.0 actor_rollout_ref.rollout.name=vllm"),
           "mean=700", notes)
          .value();
  EXPECT_THAT(q.job.not_modelled, testing::IsEmpty());
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

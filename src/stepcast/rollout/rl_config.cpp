#include "stepcast/rollout/rl_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/shipped_table.h"
#include "stepcast/base/text.h"
#include "stepcast/base/words.h"
#include "stepcast/base/yaml_document.h"
#include "stepcast/formats/framework_config.h"
#include "stepcast/formats/launch_script.h"
#include "stepcast/formats/presets.h"
#include "stepcast/rollout/detail/rl_keys.h"
#include "stepcast/rollout/lengths.h"

namespace stepcast {
// Each framework has a reader that maps its keys to the settings of a question. Readers mark the keys they use, and all
// remaining keys are listed as not modelled.
namespace {

using detail::RlKeys;

// The content of a config before it is combined with the settings of the user.
struct RlConfig {
  Job job;
  RlSettings settings;
  std::string model;                       // name at a hub, or a folder
  std::optional<std::int64_t> max_tokens;  // of prompt plus answer
  // Micro-batch size in answers (not packed rows) or in tokens.
  std::optional<std::int64_t> micro_batch_answers, micro_batch_tokens;
  std::optional<std::int64_t> said_gpus;  // GPUs given by the user; they override the config
  [[nodiscard]] std::int64_t gpus() const { return said_gpus.value_or(job.n_gpus.value_or(0)); }
  std::vector<std::string> notes;
};

// a x b; empty if one is missing or too large for a number of GPUs.
std::optional<std::int64_t> product(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  constexpr std::int64_t kMost = 1 << 24;
  if (!a || !b || *a > kMost || *b > kMost) return std::nullopt;
  return *a * *b;
}

// Sets the type; unknown words leave it unchanged.
void set_dtype(const std::string& word, JobSettings& s) {
  if (word == "bfloat16" || word == "bf16") s.dtype = DType::bf16;
  if (word == "float16" || word == "fp16") s.dtype = DType::fp16;
  if (word == "float32" || word == "fp32") s.dtype = DType::fp32;
}

// PyTorch FSDP as these frameworks use it: sharded weights, gathered in bf16.
void use_fsdp(Job& job) {
  job.framework = Framework::fsdp;
  job.settings.sharding = Sharding::zero3;
}

// For features that are modelled in only one way: any other value than `usual` is listed as not modelled.
void want(RlKeys& k, const std::string& path, std::string_view usual, RlConfig& out) {
  const std::string word = k.text(path);
  if (!word.empty() && lower(word) != usual) out.job.not_modelled.push_back(fmt::format("{}={}", path, word));
}

// LoRA of rank `rank`. `targets`: GEMMs with LoRA in the names of Hugging Face or Megatron Core; all if not given.
void use_adapters(RlKeys& k, const std::string& rank, const std::string& targets, RlConfig& out,
                  std::int64_t usual = 0) {
  const std::int64_t is_rank = k.whole_or(rank, usual);
  const std::string names = k.text(targets);
  if (is_rank == 0) return;
  out.job.settings.lora_rank = is_rank;
  out.job.settings.lora_targets = adapter_products(names.empty() ? "all" : names);
}

// The training part of a NeMo-RL config, with the Megatron or the DTensor backend.
void read_nemo_rl_training(RlKeys& k, RlConfig& out) {
  JobSettings& s = out.job.settings;
  const std::string policy = "policy.";
  s.global_batch_sequences = k.whole(policy + "train_global_batch_size");
  s.micro_batch_sequences = k.degree(policy + "train_micro_batch_size");
  set_dtype(k.text(policy + "precision"), s);
  // Only the enabled backend counts; keys of the other one have no effect.
  const bool megatron = k.is_on(policy + "megatron_cfg.enabled");
  const std::string cfg = policy + (megatron ? "megatron_cfg." : "dtensor_cfg.");
  k.pass(policy + (megatron ? "dtensor_cfg." : "megatron_cfg."));
  (void)k.is_on(cfg + "enabled", true);
  s.tensor = k.degree(cfg + (megatron ? "tensor_model_parallel_size" : "tensor_parallel_size"));
  s.context = k.degree(cfg + "context_parallel_size");
  s.expert = k.degree(cfg + (megatron ? "expert_model_parallel_size" : "expert_parallel_size"));
  if (k.is_on(cfg + "sequence_parallel")) s.sequence_parallel = true;
  if (k.is_on(cfg + "activation_checkpointing")) s.recompute = Recompute::full;
  for (const char* kind : {"sequence_packing.", "dynamic_batching."}) {
    const std::string section = policy + kind;
    const bool packs = section.find("packing") != std::string::npos;
    if (k.is_on(section + "enabled", packs) != packs)  // rows are padded, which is not modelled
      out.job.not_modelled.push_back(fmt::format("{}enabled={}", section, !packs));
    if (k.is_on(section + "enabled"))
      out.micro_batch_tokens = k.whole(section + "train_mb_tokens");
    else
      k.pass(section);
  }
  // Log-probabilities usually have the batch settings of training; equal values need no note.
  k.same(policy + "logprob_", policy + "train_micro_", "batch_size", "batch_size");
  k.same(policy + "sequence_packing.", policy + "sequence_packing.", "logprob_", "train_");
  k.same(policy + "dynamic_batching.", policy + "dynamic_batching.", "logprob_", "train_");
  constexpr std::int64_t kUsualRank = 8;  // in the examples of NeMo-RL
  const std::string peft = cfg + (megatron ? "peft." : "lora_cfg.");
  if (k.is_on(peft + "enabled"))
    use_adapters(k, peft + "dim", peft + "target_modules", out, kUsualRank);
  else
    k.pass(peft);
  if (!megatron) {
    use_fsdp(out.job);
    return;
  }
  out.job.framework = Framework::nemo;
  s.pipeline = k.degree(cfg + "pipeline_model_parallel_size");
  const std::int64_t expert_tensor = k.whole_or(cfg + "expert_tensor_parallel_size", 1);
  if (s.expert) s.expert_tensor = expert_tensor;
  s.distributed_optimizer = k.is_on(cfg + "optimizer.use_distributed_optimizer", true);
  if (k.is_on(cfg + "fp8_cfg.enabled"))
    s.fp8 = true;
  else
    k.pass(cfg + "fp8_cfg.");
  for (const char* section : {"", "optimizer.", "distributed_data_parallel_config.", "fp8_cfg."})
    k.use_megatron(cfg + section, out.job);
}

// A NeMo-RL config.
void read_nemo_rl(RlKeys& k, RlConfig& out) {
  RlSettings& r = out.settings;
  out.model = k.text("policy.model_name");
  const bool filters = k.is_on("grpo.use_dynamic_sampling");
  r.algorithm = filters ? "dapo" : "grpo";
  // `num_prompts_per_step` counts prompts that pass the filter; generation produces `batch_multiplier` times as many.
  if (filters) r.oversampling = k.number("grpo.batch_multiplier").value_or(1);
  r.prompts = k.whole("grpo.num_prompts_per_step");
  r.generations = k.whole("grpo.num_generations_per_prompt");
  // Without a KL penalty the reference still runs, unless this key disables it.
  if (k.is_on("grpo.skip_reference_policy_logprobs_calculation")) out.job.settings.reference_model = false;
  out.max_tokens = k.whole("policy.max_total_sequence_length");
  const std::string vllm = "policy.generation.vllm_cfg.";
  r.generation_tensor = k.whole(vllm + "tensor_parallel_size");
  r.generation_pipeline = k.whole(vllm + "pipeline_parallel_size");
  r.generation_memory_share = k.number(vllm + "gpu_memory_utilization");
  const std::string precision = lower(k.text("policy.precision"));
  if (lower(k.text(vllm + "precision")) == "fp8")
    r.generation_dtype = "fp8";
  else
    want(k, vllm + "precision", precision.empty() ? "bfloat16" : precision, out);
  const std::int64_t in_node = k.whole_or("cluster.gpus_per_node", 8);
  if (k.has("cluster.")) out.job.n_gpus = k.gpus("cluster.num_nodes", 1, "cluster.gpus_per_node", in_node);
  // Asynchronous training is off-policy by the maximum age of trajectories.
  const bool asynchronous = k.is_on("grpo.async_grpo.enabled");
  if (!asynchronous) k.pass("grpo.async_grpo.");
  r.policy =
      asynchronous ? fmt::format("off:{}", k.whole_or("grpo.async_grpo.max_trajectory_age_steps", 1)) : "on";
  const std::string pool = "policy.generation.colocated.";
  if (!k.is_on(pool + "enabled", true)) {
    r.generation_gpus = product(k.whole_or(pool + "resources.num_nodes", 1),
                                k.whole_or(pool + "resources.gpus_per_node", in_node));
    if (!asynchronous) {
      r.policy = "off:1";
      out.notes.emplace_back(
          "a generation pool without grpo.async_grpo: forecast as if both pools worked at the same time");
    }
  } else {
    k.pass(pool);
  }
  read_nemo_rl_training(k, out);
}

// True if verl uses its Megatron backend: by the strategy, the engine, the name of the config or of its groups, else by the
// sections that are present.
bool is_megatron_of_verl(RlKeys& k) {
  const std::string actor = "actor_rollout_ref.actor.", strategy = k.text(actor + "strategy"),
                    engine = k.text("model_engine"),
                    name =
                        k.text("config-name") + k.text("defaults") + k.text("actor@actor_rollout_ref.actor");
  if (!strategy.empty()) return strategy == "megatron";
  if (!engine.empty()) return engine == "megatron";
  if (name.find("megatron") != std::string::npos) return true;
  return k.has(actor + "megatron.") && !k.has(actor + "fsdp_config.");
}

// Megatron layout of the actor: keys of verl and of the TransformerConfig of Megatron Core.
void read_verl_megatron(RlKeys& k, RlConfig& out) {
  JobSettings& s = out.job.settings;
  const std::string actor = "actor_rollout_ref.actor.", cfg = actor + "megatron.",
                    layers = cfg + "override_transformer_config.",
                    optimizer = actor + "optim.override_optimizer_config.";
  out.job.framework = Framework::megatron;
  s.distributed_optimizer = k.is_on(cfg + "use_distributed_optimizer", true);
  s.tensor = k.degree(cfg + "tensor_model_parallel_size");
  s.pipeline = k.degree(cfg + "pipeline_model_parallel_size");
  s.virtual_stages = k.degree(cfg + "virtual_pipeline_model_parallel_size");
  s.context = k.degree(cfg + "context_parallel_size");
  s.expert = k.degree(cfg + "expert_model_parallel_size");
  const std::optional<std::int64_t> expert_tensor = k.whole(cfg + "expert_tensor_parallel_size");
  if (s.expert) s.expert_tensor = expert_tensor;  // null: equal to tensor parallelism
  if (k.is_on(cfg + "sequence_parallel", true) && s.tensor) s.sequence_parallel = true;
  // Keys of releases before 0.4. Later releases use the keys of Megatron Core, and recompute nothing by default.
  const std::string older = "actor_rollout_ref.model.gradient_checkpointing_kwargs.activations_checkpoint_";
  const std::string granularity = k.text(older + "granularity"), method = k.text(older + "method");
  const std::optional<std::int64_t> count = k.whole(older + "num_layers");
  if (k.is_on("actor_rollout_ref.model.enable_gradient_checkpointing")) {
    s.recompute = granularity == "selective" ? Recompute::selective : Recompute::full;
    if (!method.empty()) s.recompute_by_block = method == "block";
    if (count) s.recompute_layers = count;
  }
  // Modelled only if the whole optimizer is offloaded and runs on the CPU.
  const double on_host = k.number(optimizer + "optimizer_offload_fraction").value_or(0);
  if (on_host > 0 && on_host < 1)
    out.job.not_modelled.push_back(fmt::format("{}optimizer_offload_fraction={:g}", optimizer, on_host));
  else if (k.is_on(optimizer + "optimizer_cpu_offload") || on_host == 1)
    s.optimizer_offload = true;
  for (const std::string& section : {cfg, layers, cfg + "override_ddp_config.", optimizer})
    k.use_megatron(section, out.job);
}

// FSDP layout of the actor.
void read_verl_fsdp(RlKeys& k, RlConfig& out) {
  JobSettings& s = out.job.settings;
  const std::string actor = "actor_rollout_ref.actor.", cfg = actor + "fsdp_config.";
  use_fsdp(out.job);
  want(k, actor + "strategy", "fsdp", out);
  want(k, "model_engine", "dp", out);
  s.context = k.degree(actor + "ulysses_sequence_parallel_size");
  if (!s.context) s.context = k.degree(cfg + "ulysses_sequence_parallel_size");
  if (s.context) s.context_parallel_kind = ContextParallelKind::all_to_all;
  if (!k.is_on(cfg + "reshard_after_forward", true)) s.sharding = Sharding::zero2;
  // fsdp_size: GPUs per copy of the weights; -1: all GPUs share one copy.
  const double shards = k.number(cfg + "fsdp_size").value_or(-1);
  const double gpus = static_cast<double>(out.gpus());
  if (shards == 1)
    s.sharding = Sharding::none;
  else if (shards > 1 && std::fmod(gpus, shards) != 0)
    out.job.not_modelled.push_back(fmt::format("{}fsdp_size={:g}", cfg, shards));
  else if (shards > 1 && gpus > shards)
    s.weight_copies = static_cast<std::int64_t>(gpus / shards);
  if (k.is_on("actor_rollout_ref.model.enable_gradient_checkpointing", true)) s.recompute = Recompute::full;
}

// The training part of a verl config.
void read_verl_training(RlKeys& k, RlConfig& out) {
  const std::string actor = "actor_rollout_ref.actor.";
  JobSettings& s = out.job.settings;
  // ppo_mini_batch_size counts prompts, each with `rollout.n` answers.
  s.global_batch_sequences =
      product(k.whole_or(actor + "ppo_mini_batch_size", 256), out.settings.generations);
  s.dtype = DType::bf16;
  s.reference_model = k.is_on(actor + "use_kl_loss") || k.is_on("algorithm.use_kl_in_reward");
  use_adapters(k, "actor_rollout_ref.model.lora_rank", "actor_rollout_ref.model.target_modules", out);
  use_adapters(k, "actor_rollout_ref.model.lora.rank", "actor_rollout_ref.model.lora.target_modules", out);
  if (is_megatron_of_verl(k))
    read_verl_megatron(k, out);
  else
    read_verl_fsdp(k, out);
  // ppo_max_token_len_per_gpu of verl/trainer/config/actor/actor.yaml.
  constexpr std::int64_t kUsualTokens = 16384;
  if (k.is_on(actor + "use_dynamic_bsz")) {
    out.micro_batch_tokens =
        product(k.whole_or(actor + "ppo_max_token_len_per_gpu", kUsualTokens), s.context.value_or(1));
  } else {
    out.micro_batch_answers = k.whole(actor + "ppo_micro_batch_size_per_gpu");
    // Before release 0.2 this key counted the answers of all GPUs.
    const std::optional<std::int64_t> all = k.whole(actor + "ppo_micro_batch_size");
    const auto others = product(product(s.tensor.value_or(1), s.pipeline.value_or(1)), s.context.value_or(1));
    if (const auto of_copies = product(all, others); of_copies && !out.micro_batch_answers && out.gpus() > 0)
      out.micro_batch_answers = std::max<std::int64_t>(1, *of_copies / out.gpus());
  }
  // Reference and critic have the layout of the actor; equal keys are marked as read.
  for (const char* section : {"actor_rollout_ref.ref.", "actor_rollout_ref.rollout."})
    k.same(section, actor, "log_prob_", "ppo_");
  k.same("actor_rollout_ref.ref.log_prob_", actor);
  k.same("critic.model.", "actor_rollout_ref.model.");
  k.same("critic.", actor);
  k.same("critic.model.", actor);
}

// A verl config; defaults as in verl/trainer/config/ppo_trainer.yaml.
void read_verl(RlKeys& k, RlConfig& out) {
  RlSettings& r = out.settings;
  out.model = k.text("actor_rollout_ref.model.path");
  const std::string estimator = k.text("algorithm.adv_estimator");
  const bool filters = k.is_on("algorithm.filter_groups.enable");
  r.algorithm = filters ? "dapo" : estimator.empty() || estimator == "gae" ? "ppo" : "grpo";
  if (r.algorithm == "grpo" && estimator != "grpo")
    out.notes.push_back(
        fmt::format("{}: priced as grpo, which has no critic either", estimator.substr(0, 40)));
  r.prompts = k.whole_or("data.train_batch_size", 1024);
  // Fully asynchronous training: updates of a number of mini-batches, as they arrive.
  const std::string fully = "async_training.";
  if (k.has(fully)) {
    const std::optional<std::int64_t> batches = product(k.whole_or(fully + "require_batches", 1),
                                                        k.whole_or(fully + "trigger_parameter_sync_step", 1));
    if (*r.prompts == 0)
      r.prompts = product(k.whole_or("actor_rollout_ref.actor.ppo_mini_batch_size", 256), batches);
  }
  if (filters) {
    if (const auto generated = k.number("data.gen_batch_size"); generated && r.prompts.value_or(0) > 0)
      r.oversampling = std::max(1.0, *generated / static_cast<double>(*r.prompts));
  }
  const std::string rollout = "actor_rollout_ref.rollout.";
  r.generations = k.whole_or(rollout + "n", 1);
  out.max_tokens = k.whole_or("data.max_prompt_length", 512) + k.whole_or("data.max_response_length", 512);
  if (const auto longest = k.whole(rollout + "max_model_len"); longest && *longest > 0)
    out.max_tokens = std::min(*out.max_tokens, *longest);
  for (const char* length : {"prompt_length", "response_length"})
    want(k, rollout + length, k.text(std::string{"data.max_"} + length), out);
  r.generation_tensor = k.whole_or(rollout + "tensor_model_parallel_size", 2);
  r.generation_pipeline = k.whole_or(rollout + "pipeline_model_parallel_size", 1);
  r.generation_memory_share = k.number(rollout + "gpu_memory_utilization").value_or(0.5);
  if (k.text(rollout + "quantization") == "fp8")
    r.generation_dtype = "fp8";
  else
    want(k, rollout + "quantization", "", out);
  out.job.n_gpus = k.gpus("trainer.nnodes", 1, "trainer.n_gpus_per_node", 8);
  r.policy = "on";
  // Off-policy: a separate pool generates.
  if (!k.is_on("actor_rollout_ref.hybrid_engine", true) || k.has(fully)) {
    const auto pool = k.gpus("rollout.nnodes", 1, "rollout.n_gpus_per_node", 8);
    r.policy = fmt::format("off:{}",
                           std::max<std::int64_t>(1, k.whole_or(fully + "trigger_parameter_sync_step", 1)));
    r.generation_gpus = pool;
    if (out.job.n_gpus && pool) out.job.n_gpus = *out.job.n_gpus + *pool;
  }
  const bool scores = k.is_on("reward_model.enable"), scores_too = k.is_on("reward.reward_model.enable");
  const std::string scorer = k.text("reward_model.model.path"),
                    other = k.text("reward.reward_model.model_path");
  if (scores || scores_too) r.reward_model = scorer.empty() ? other : scorer;
  if (r.reward_model.empty() && (scores || scores_too)) r.reward_model = "reward_model.model.path";
  if (!scores) k.pass("reward_model.");
  if (!scores_too) k.pass("reward.reward_model.");
  read_verl_training(k, out);
}

// OpenRLHF flags; defaults as in openrlhf/cli/train_ppo_ray.py.
void read_open_rlhf(RlKeys& k, RlConfig& out) {
  RlSettings& r = out.settings;
  JobSettings& s = out.job.settings;
  out.model = k.text("pretrain");
  const std::string estimator = k.text("advantage_estimator");
  const bool filters = k.is_on("dynamic_filtering");
  r.algorithm = filters ? "dapo" : estimator.empty() || estimator == "gae" ? "ppo" : "grpo";
  if (k.number("init_kl_coef").value_or(0.01) == 0) s.reference_model = false;
  (void)k.is_on("use_kl_loss");  // uses the same reference
  r.prompts = k.whole_or("rollout_batch_size", 1024);
  // This many prompts are generated at a time until enough pass the filter.
  if (const auto generated = k.number("vllm_generate_batch_size"); generated && *r.prompts > 0)
    r.oversampling = std::max(1.0, *generated / static_cast<double>(*r.prompts));
  r.generations = k.whole_or("n_samples_per_prompt", 1);
  const std::int64_t both = k.whole_or("prompt_max_len", 1024) + k.whole_or("generate_max_len", 1024);
  out.max_tokens = k.whole_or("max_len", both);
  s.global_batch_sequences = k.whole_or("train_batch_size", 128);
  const std::optional<std::int64_t> answers = k.degree("micro_train_batch_size");
  const bool counts_tokens = k.is_on("use_dynamic_batch");
  s.dtype = DType::bf16;
  s.zero_stage = k.whole_or("zero_stage", 2);
  out.job.framework = Framework::deepspeed;
  s.tensor = k.degree("ds_tensor_parallel_size");
  s.context = k.degree("ring_attn_size");
  constexpr std::int64_t kUsualTokens = 16384;  // --train_max_tokens_per_gpu
  if (counts_tokens)
    out.micro_batch_tokens =
        product(k.whole_or("train_max_tokens_per_gpu", kUsualTokens), s.context.value_or(1));
  else if (!k.is_on("packing_samples"))
    out.micro_batch_answers = answers;
  if (!k.is_on("packing_samples") && !counts_tokens)
    out.job.not_modelled.emplace_back("padding, without packing_samples");
  k.same("rollout_max_", "train_max_");
  k.same("micro_rollout_", "micro_train_");
  if (k.is_on("gradient_checkpointing")) s.recompute = Recompute::full;
  if (k.is_on("adam_offload")) s.optimizer_offload = true;
  use_adapters(k, "lora_rank", "target_modules", out);
  r.generation_tensor = k.whole_or("vllm_tensor_parallel_size", 1);
  r.generation_memory_share = k.number("vllm_gpu_memory_utilization");
  // The actor and the vLLM engines have separate GPUs unless everything is colocated.
  const auto actor = k.gpus("actor_num_nodes", 1, "actor_num_gpus_per_node", 8);
  const auto engines = product(k.whole("vllm_num_engines"), r.generation_tensor);
  out.job.n_gpus = actor;
  r.policy = "on";
  const bool asynchronous = k.is_on("async_train"), shares = k.is_on("colocate_actor_ref"),
             one_pool = k.is_on("colocate_all_models");
  if (!one_pool && actor && engines.value_or(0) > 0) {
    r.policy = "off:1";
    r.generation_gpus = engines;
    out.job.n_gpus = *actor + *engines;
    if (!asynchronous)
      out.notes.emplace_back(
          "a generation pool without --async_train: forecast as if both pools worked at the same time");
    if (!shares)
      out.notes.emplace_back("reference, critic and reward model are assumed to share the GPUs of the actor");
  } else {
    for (const char* role : {"ref_num_", "critic_num_", "reward_num_"}) k.pass(role);
    if (asynchronous) out.job.not_modelled.emplace_back("async_train=true");
    if (engines && actor && *engines != *actor)
      out.job.not_modelled.push_back(fmt::format("vllm_num_engines={}", k.text("vllm_num_engines")));
  }
  (void)k.is_on("colocate_critic_reward");
  r.reward_model = k.text("reward_pretrain");
  want(k, "critic_pretrain", lower(out.model), out);
}

// The values of a command line after its script. Forms: "path=value" ("++path=value"), "--name value", "--name a b",
// "--name=value", "--name".
YamlScalars values_of(const std::vector<std::string>& words) {
  YamlScalars values;
  const auto is_script = [](const std::string& word) {
    return word.ends_with(".py") && word.find('=') == std::string::npos;
  };
  const auto script = std::ranges::find_if(words, is_script);
  const auto is_value = [](const std::string& word) {
    return !word.starts_with("--") && !word.starts_with('+') && !word.starts_with('~') &&
           word.find('=') == std::string::npos;
  };
  for (auto at = script == words.end() ? words.begin() : script + 1; at != words.end(); ++at) {
    std::string_view word = *at;
    const bool is_flag = word.starts_with("--");
    word.remove_prefix(std::min(word.find_first_not_of("+-"), word.size()));
    const std::size_t equals = word.find('=');
    std::string value;
    if (equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else if (!is_flag) {
      continue;
    } else {
      if (at + 1 != words.end() && !(at + 1)->starts_with("--")) value = *++at;
      while (at + 1 != words.end() && !value.empty() && is_value(*(at + 1))) value += " " + *++at;
      if (value.empty()) value = "true";
    }
    for (const char quote : {'\'', '"'})
      if (value.size() > 1 && value.front() == quote && value.back() == quote)
        value = value.substr(1, value.size() - 2);
    values.insert_or_assign(std::string{word.substr(0, equals)}, std::move(value));
  }
  return values;
}

// A post-training framework: the keys that identify it, and its reader.
struct RlFormat {
  std::string_view name;
  std::string_view section;      // section that only its configs have
  std::string_view key, one_of;  // or a key together with one of several others
  void (*read)(RlKeys& keys, RlConfig& out);
};
constexpr RlFormat kFormats[] = {
    {"verl", "actor_rollout_ref.", "", "", read_verl},
    {"NeMo-RL", "grpo.", "config", "policy.model_name cluster.num_nodes cluster.gpus_per_node", read_nemo_rl},
    {"OpenRLHF", "", "pretrain", "rollout_batch_size vllm_num_engines actor_num_nodes", read_open_rlhf},
};

// The framework of these keys; null: none of them.
const RlFormat* format_of(const YamlScalars& values) {
  const auto has_section = [&](std::string_view section) {
    const auto at = values.lower_bound(section);
    return !section.empty() && at != values.end() && at->first.starts_with(section);
  };
  const auto has = [&](std::string_view key) { return values.contains(key); };
  const auto* const found = std::ranges::find_if(kFormats, [&](const RlFormat& format) {
    return has_section(format.section) ||
           (!format.key.empty() && has(format.key) && any_word(format.one_of, has));
  });
  return found == std::end(kFormats) ? nullptr : found;
}

Result<YamlScalars> file_values(const std::filesystem::path& file, std::vector<std::string>& notes,
                                int depth);

// Both sets of values; `upper` has precedence.
YamlScalars over_values(YamlScalars lower, YamlScalars upper) {
  for (auto& [path, value] : upper) lower.insert_or_assign(path, std::move(value));
  return lower;
}

// The YAML files that `defaults` names, as a single value or a list.
std::vector<std::string> files_below(const JsonValue& root) {
  std::vector<std::string> files;
  const JsonValue* const defaults = root.find("defaults");
  const auto add = [&](const JsonValue& one) {
    if (one.is_text() && one.text().ends_with(".yaml")) files.push_back(one.text());
  };
  if (defaults != nullptr && defaults->is_array())
    for (const JsonValue& item : defaults->items()) add(item);
  else if (defaults != nullptr)
    add(*defaults);
  return files;
}

// The values of a file on top of those of its `defaults`. Missing default files give a note and are replaced by the tables
// shipped for NeMo-RL, if there is one.
Result<YamlScalars> config_values(const ConfigText& file, std::vector<std::string>& notes, int depth = 0) {
  STEPCAST_ASSIGN(const JsonValue root, parse_yaml(file.text, file.name));
  if (!root.is_object())
    return Error::at(file.name, "").found(std::string{root.kind_name()}).expected("keys with their values");
  YamlScalars below;
  constexpr int kDeepest = 8;
  for (const std::string& name : depth < kDeepest ? files_below(root) : std::vector<std::string>{}) {
    const std::filesystem::path base = std::filesystem::path{file.name}.parent_path() / name;
    STEPCAST_ASSIGN(YamlScalars values, file_values(base, notes, depth + 1));
    below = over_values(std::move(below), std::move(values));
  }
  return over_values(std::move(below), yaml_scalars(root));
}

Result<YamlScalars> file_values(const std::filesystem::path& file, std::vector<std::string>& notes,
                                int depth) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) {
    STEPCAST_ASSIGN(const ConfigText text, read_config_text(file));
    return config_values(text, notes, depth);
  }
  const std::string name = file.filename().string();
  const std::string_view shipped = shipped_table("nemo_rl_" + name);
  notes.push_back(
      fmt::format("{} does not exist: {}", name.substr(0, 120),
                  shipped.empty() ? "its content is ignored" : "the version shipped with NeMo-RL is used"));
  if (shipped.empty()) return YamlScalars{};
  return config_values({std::string{shipped}, name}, notes, depth);
}

// The values of a config or command line, with its framework and name.
struct FoundConfig {
  YamlScalars values;
  const RlFormat* format = nullptr;
  std::string name;
};

// Configs that are part of verl itself. Their values are the defaults of the reader.
bool is_of_verl(std::string_view config) {
  const std::string_view name = config.substr(0, config.find('.'));
  return name.ends_with("ppo_trainer") || name.ends_with("ppo_megatron_trainer") || name.starts_with("dapo_");
}

Result<FoundConfig> found_config(const Job& job, std::vector<std::string>& notes) {
  FoundConfig out;
  if (job.config) {
    out.name = job.config->name;
    STEPCAST_ASSIGN(out.values, config_values(*job.config, notes));
  } else if (job.command_line) {
    out.name = "--command-line";
    STEPCAST_ASSIGN(const std::vector<std::string> words, words_of_launch_script(*job.command_line));
    out.values = values_of(words);
    // The default config of this NeMo-RL script.
    if (std::ranges::any_of(words,
                            [](const std::string& word) { return word.ends_with("run_grpo_math.py"); }))
      out.values.emplace("config", "grpo_math_1B.yaml");
    // A config file of NeMo-RL, or one of Hydra that is not part of verl. Both may be given without a file extension.
    const auto at = [&](const char* key) {
      const auto found = out.values.find(key);
      return found == out.values.end() ? std::string{} : found->second;
    };
    std::filesystem::path file = at("config");
    if (file.empty() && !at("config-name").empty() && !is_of_verl(at("config-name")))
      file = std::filesystem::path{at("config-path")} / at("config-name");
    if (!file.empty() && file.extension() != ".yaml" && file.extension() != ".yml") file += ".yaml";
    if (!file.empty() && format_of(out.values) != nullptr) {
      STEPCAST_ASSIGN(YamlScalars below, file_values(file, notes, 0));
      out.values = over_values(std::move(below), std::move(out.values));
    }
  }
  out.format = format_of(out.values);
  return out;
}

// The model of a folder with config.json, or of a hub name. For other paths (`$HOME/models/Qwen3-8B/snapshot`), the last part
// that is a hub name.
std::optional<std::string> model_named(const std::string& name, std::vector<std::string>& notes) {
  std::error_code ignored;
  const auto at = std::filesystem::path{name} / "config.json";
  if (std::filesystem::exists(at, ignored)) return at.string();
  for (std::string_view rest = name; !rest.empty(); rest = rest.substr(0, rest.rfind('/'))) {
    const std::string_view part = rest.substr(rest.rfind('/') + 1);
    const std::size_t dashes = part.rfind("--");  // format of a cache folder: models--Qwen--Qwen3-8B
    if (auto preset = preset_of_hub_name(dashes == std::string_view::npos ? part : part.substr(dashes + 2)))
      return preset;
    if (rest.rfind('/') == std::string_view::npos) break;
  }
  // Names of fine-tuned models such as "sft-qwen-2.5-32b-instruct" contain the name of their base model.
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t next = rest.find_first_of("-_/");
    if (next == std::string_view::npos) break;
    rest.remove_prefix(next + 1);
    const auto preset = preset_of_hub_name(rest.substr(0, rest.find('/')));
    if (!preset) continue;
    notes.push_back(fmt::format("{}: assumed to be {}, by its name", name.substr(0, 120), *preset));
    return preset;
  }
  return std::nullopt;
}

Status use_model(const RlConfig& config, const std::string& file, Job& job, std::vector<std::string>& notes) {
  if (!job.model.empty() || job.transformer) return Ok{};
  const std::optional<std::string> model = model_named(config.model, notes);
  if (model) job.model = *model;
  if (model) return Ok{};
  return Error::at(file, "the model")
      .found(config.model.empty() ? "nothing" : "`" + config.model.substr(0, 80) + "`")
      .expected("the name of a preset")
      .advice("give its config.json with --model");
}

// Sets the micro-batch to the number of longest rows with the configured answers or tokens.
Status use_micro_batch(const RlConfig& config, const std::string& lengths, JobSettings& s) {
  if (!config.micro_batch_answers && !config.micro_batch_tokens) return Ok{};
  STEPCAST_ASSIGN(const Lengths read, Lengths::read(lengths));
  const double tokens = config.micro_batch_tokens
                            ? static_cast<double>(*config.micro_batch_tokens)
                            : static_cast<double>(*config.micro_batch_answers) * read.mean();
  const double rows = tokens / read.max();
  constexpr double kMost = 1e6;
  // A token limit is strict (round down); a number of answers is an average (round).
  const double whole = config.micro_batch_tokens ? std::floor(rows) : std::round(rows);
  s.micro_batch_sequences = static_cast<std::int64_t>(std::clamp(whole, 1.0, kMost));
  return Ok{};
}

// Configs contain the maximum length but not the mean, which the user must give.
Status use_lengths(const RlConfig& config, const std::string& file, RlSettings& r) {
  if (!config.max_tokens) return Ok{};
  if (r.lengths.empty()) {
    return Error::at(file, "the mean length",
                     "a config has the maximum length of sequences, not their real lengths")
        .advice(fmt::format("add --lengths mean=TOKENS,max={}", *config.max_tokens));
  }
  if (r.lengths.starts_with("mean=") && r.lengths.find("max=") == std::string::npos)
    r.lengths += fmt::format(",max={}", *config.max_tokens);
  return Ok{};
}

}  // namespace

bool is_rl_config(const Job& job) {
  if (!job.config && !job.command_line) return false;
  std::vector<std::string> ignored;
  const Result<FoundConfig> found = found_config(job, ignored);
  return found.ok() && found->format != nullptr;
}

Result<RlQuestion> with_rl_config(const RlQuestion& said, std::vector<std::string>& notes) {
  RlQuestion out = said;
  out.job.config.reset();
  out.job.command_line.reset();
  STEPCAST_ASSIGN(FoundConfig found, found_config(said.job, notes));
  if (found.format == nullptr) {
    return Error::at(found.name, "")
        .found("keys of no known post-training framework")
        .expected("a config or command line of NeMo-RL, verl or OpenRLHF (docs/post-training.md)");
  }
  // Read the config, then fill everything that the user did not set.
  RlKeys keys{std::move(found.values), found.name};
  RlConfig config{.said_gpus = said.job.n_gpus};
  found.format->read(keys, config);
  if (keys.wrong()) return *keys.wrong();
  notes.push_back(fmt::format("read as settings of {}", found.format->name));
  notes.insert(notes.end(), config.notes.begin(), config.notes.end());
  keys.list_rest(found.format->name, config.job.not_modelled, notes);
  Job& job = out.job;
  STEPCAST_TRY(use_model(config, found.name, job, notes));
  if (!job.n_gpus) job.n_gpus = config.job.n_gpus;
  if (!job.framework) job.framework = config.job.framework;
  job.settings = over(config.job.settings, job.settings);
  job.not_modelled.insert(job.not_modelled.end(), config.job.not_modelled.begin(),
                          config.job.not_modelled.end());
  RlSettings& r = out.settings;
  const auto fill = [](auto& mine, const auto& theirs) {
    if (!mine) mine = theirs;
  };
  const auto fill_word = [](std::string& mine, const std::string& theirs) {
    if (mine.empty()) mine = theirs;
  };
  const RlSettings& c = config.settings;
  fill_word(r.algorithm, c.algorithm);
  fill_word(r.policy, c.policy);
  fill_word(r.generation_dtype, c.generation_dtype);
  if (r.reward_model.empty() && !c.reward_model.empty()) {
    const std::optional<std::string> reward = model_named(c.reward_model, notes);
    if (!reward) notes.push_back(c.reward_model + ": unknown, assumed to be as large as the policy");
    r.reward_model = reward.value_or(job.model);
  }
  fill(r.prompts, c.prompts);
  fill(r.generations, c.generations);
  fill(r.oversampling, c.oversampling);
  fill(r.generation_gpus, r.policy == c.policy ? c.generation_gpus : std::nullopt);
  fill(r.generation_tensor, c.generation_tensor);
  fill(r.generation_pipeline, c.generation_pipeline);
  fill(r.generation_memory_share, c.generation_memory_share);
  STEPCAST_TRY(use_lengths(config, found.name, r));
  if (!said.job.settings.micro_batch_sequences)
    STEPCAST_TRY(use_micro_batch(config, r.lengths, job.settings));
  return out;
}

}  // namespace stepcast

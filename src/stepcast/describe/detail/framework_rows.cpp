#include "stepcast/describe/detail/framework_rows.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/words.h"

namespace stepcast::detail {

namespace {

using S = JobSettings;
using W = ConfigWords;

constexpr ConfigRow kMaxTextRows[] = {
    {"model_name", &W::model},
    {"base_emb_dim", &S::hidden_size},
    {"base_mlp_dim", &S::ffn_hidden_size},
    {"base_num_decoder_layers", &S::n_layers},
    {"base_num_query_heads", &S::n_heads},
    {"base_num_kv_heads", &S::query_groups},
    {"head_dim", &S::head_dim},
    {"vocab_size", &S::vocab_size},
    {"logits_via_embedding", &S::tied_embeddings},
    {"num_experts", &S::n_experts},
    {"num_experts_per_tok", &S::experts_per_token},
    {"per_device_batch_size", &W::rank_batch},
    {"gradient_accumulation_steps", &W::accumulation},
    {"num_pipeline_microbatches", &W::pipeline_parts},
    {"max_target_length", &S::seq_len_tokens},
    {"dtype", &W::precision},
    {"quantization", &W::quantization},
    {"capacity_factor", &W::expert_capacity},
    {"sparse_matmul", &W::sparse_experts},
    {"remat_policy", &W::recompute},
    {"decoder_layer_input", &W::kept_input},
    {"query_proj", &W::kept_query},
    {"key_proj", &W::kept_key},
    {"value_proj", &W::kept_value},
    {"qkv_proj", &W::kept_qkv},
    {"context", &W::kept_attention},
    {"out_proj", &W::kept_attention_output},
    {"mlpwi", &W::kept_ffn_up},
    {"mlpwi_0", &W::kept_ffn_up},
    {"mlpwo", &W::kept_ffn_down},
    {"ici_data_parallelism", &W::copies_inside},
    {"ici_fsdp_parallelism", &W::sharded_inside},
    {"ici_fsdp_transpose_parallelism", &W::also_sharded_inside},
    {"dcn_data_parallelism", &W::copies_outside},
    {"dcn_fsdp_parallelism", &W::sharded_outside},
    {"ici_tensor_parallelism", &S::tensor},
    {"dcn_tensor_parallelism", &W::tensor_outside},
    {"ici_pipeline_parallelism", &S::pipeline},
    {"ici_context_parallelism", &S::context},
    {"ici_expert_parallelism", &S::expert},
    {"opt_type", &W::optimizer},
    {"gradient_clipping_threshold", &W::gradient_clip},
};

constexpr ConfigRow kNanotronRows[] = {
    {"parallelism.dp", &W::data},
    {"parallelism.tp", &S::tensor},
    {"parallelism.pp", &S::pipeline},
    {"parallelism.context_parallel_size", &S::context},
    {"parallelism.cp", &S::context},
    {"parallelism.expert_parallel_size", &S::expert},
    {"parallelism.recompute_layer", &W::recompute},
    {"tokens.micro_batch_size", &W::rank_batch},
    {"tokens.batch_accumulation_per_replica", &W::accumulation},
    {"tokens.sequence_length", &S::seq_len_tokens},
    {"model.dtype", &W::precision},
    {"model.model_config.hidden_size", &S::hidden_size},
    {"model.model_config.intermediate_size", &S::ffn_hidden_size},
    {"model.model_config.num_attention_heads", &S::n_heads},
    {"model.model_config.num_hidden_layers", &S::n_layers},
    {"model.model_config.num_key_value_heads", &S::query_groups},
    {"model.model_config.vocab_size", &S::vocab_size},
    {"model.model_config.max_position_embeddings", &S::max_position},
    {"model.model_config.tie_word_embeddings", &S::tied_embeddings},
    {"model.model_config.moe_config.num_experts", &S::n_experts},
    {"model.model_config.moe_config.top_k", &S::experts_per_token},
    {"model.model_config.moe_config.moe_intermediate_size", &S::expert_ffn_hidden_size},
    {"model.model_config.moe_config.shared_expert_intermediate_size", &S::shared_ffn_hidden_size},
    {"optimizer.zero_stage", &S::zero_stage},
    {"optimizer.optimizer_factory.name", &W::optimizer},
    {"optimizer.clip_grad", &W::gradient_clip},
};

constexpr ConfigRow kTorchtuneRows[] = {
    {"model._component_", &W::model},
    {"model.lora_rank", &W::adapter_rank},
    {"model.lora_attn_modules", &W::adapter_targets},
    {"model.apply_lora_to_mlp", &W::all_linear},
    {"batch_size", &W::rank_batch},
    {"gradient_accumulation_steps", &W::accumulation},
    {"tokenizer.max_seq_len", &S::seq_len_tokens},
    {"enable_activation_checkpointing", &W::recompute},
    {"dtype", &W::precision},
    {"optimizer._component_", &W::optimizer},
    {"tensor_parallel_dim", &S::tensor},
    {"context_parallel_dim", &S::context},
    {"clip_grad_norm", &W::gradient_clip},
};

// NeMo 2 and Megatron-Bridge have Megatron-LM's names: describe/nemo_arguments.h.

constexpr ConfigRow kAxolotlRows[] = {
    {"base_model", &W::model},
    {"micro_batch_size", &W::rank_batch},
    {"gradient_accumulation_steps", &W::accumulation},
    {"sequence_len", &S::seq_len_tokens},
    {"bf16", &W::bf16},
    {"fp16", &W::fp16},
    {"bfloat16", &W::bf16},
    {"fp8", &S::fp8},
    {"gradient_checkpointing", &W::recompute},
    {"adapter", &W::adapter},
    {"lora_r", &W::adapter_rank},
    {"lora_target_modules", &W::adapter_targets},
    {"lora_target_linear", &W::all_linear},
    {"fsdp", &W::sharding},
    {"fsdp_version", &W::sharding},
    {"fsdp_config.activation_checkpointing", &W::recomputes},
    {"fsdp_config.fsdp_activation_checkpointing", &W::recomputes},
    {"fsdp_config.sharding_strategy", &W::sharding},
    {"fsdp_config.fsdp_sharding_strategy", &W::sharding},
    {"tensor_parallel_size", &S::tensor},
    {"context_parallel_size", &S::context},
    {"sequence_parallel_degree", &S::context},
    {"optimizer", &W::optimizer},
    {"max_grad_norm", &W::gradient_clip},
    {"rl", &W::work},
};

// Arguments of Hugging Face's Trainer, and of who builds on it.
#define STEPCAST_TRAINER_ROWS                                                                     \
  {"model_name_or_path", &W::model}, {"per_device_train_batch_size", &W::rank_batch},             \
      {"gradient_accumulation_steps", &W::accumulation}, {"bf16", &W::bf16}, {"fp16", &W::fp16},  \
      {"pure_bf16", &W::bf16}, {"gradient_checkpointing", &W::recompute}, {"fsdp", &W::sharding}, \
      {"optim", &W::optimizer}, {"fsdp_config.activation_checkpointing", &W::recomputes},         \
      {"fsdp_config.fsdp_activation_checkpointing", &W::recomputes}, {                            \
    "max_grad_norm", &W::gradient_clip                                                            \
  }

constexpr ConfigRow kLlamaFactoryRows[] = {STEPCAST_TRAINER_ROWS,
                                           {"stage", &W::work},
                                           {"finetuning_type", &W::adapter},
                                           {"lora_rank", &W::adapter_rank},
                                           {"lora_target", &W::adapter_targets},
                                           {"cutoff_len", &S::seq_len_tokens},
                                           {"disable_gradient_checkpointing", &W::keeps_activations}};
constexpr ConfigRow kTrlRows[] = {STEPCAST_TRAINER_ROWS,
                                  {"use_peft", &W::adapter},
                                  {"lora_r", &W::adapter_rank},
                                  {"lora_target_modules", &W::adapter_targets},
                                  {"max_length", &S::seq_len_tokens},
                                  {"max_seq_length", &S::seq_len_tokens}};
constexpr ConfigRow kTrainerRows[] = {STEPCAST_TRAINER_ROWS,
                                      {"block_size", &S::seq_len_tokens},
                                      {"max_seq_length", &S::seq_len_tokens},
                                      {"model_max_length", &S::seq_len_tokens}};

const ConfigFramework kFrameworks[] = {
    {"MaxText", "per_device_batch_size model_name|base_num_decoder_layers", kMaxTextRows, 12, 2048, 8,
     Framework::maxtext, true, true},
    {"Nanotron", "parallelism.dp tokens.micro_batch_size model.model_config", kNanotronRows, 1, 0, 8,
     Framework::megatron},
    {"torchtune", "model._component_ batch_size", kTorchtuneRows, 1, 0, 8, Framework::fsdp},
    {"NeMo 2 or Megatron-Bridge", "model train|trainer !model.hidden_dim", {}},
    {"Axolotl", "base_model", kAxolotlRows, 1, 512, 8, Framework::pytorch},
    {"LLaMA-Factory", "model_name_or_path stage", kLlamaFactoryRows, 8, 2048, 8, Framework::pytorch, true},
    {"TRL", "model_name_or_path dataset_name|use_peft|max_length|packing !block_size", kTrlRows, 8, 1024, 16,
     Framework::pytorch},
    {"Hugging Face's Trainer", "per_device_train_batch_size output_dir", kTrainerRows, 8, 0, 8,
     Framework::pytorch},
};

Result<std::vector<ConfigFramework>> read_frameworks() {
  std::vector<ConfigFramework> all{std::begin(kFrameworks), std::end(kFrameworks)};
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table("framework_keys.csv"), "framework_keys.csv"));
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return all;
    const bool priced = rows.cell("use") == "not_priced";
    if (!priced && rows.cell("use") != "passed_over")
      return rows.error("use").expected("not_priced or passed_over");
    const auto add = [&](std::string_view name) {
      const auto framework = std::ranges::find(all, name, &ConfigFramework::name);
      if (framework == all.end()) return true;
      std::string& keys = priced ? framework->not_priced : framework->passed_over;
      keys += fmt::format(" {}", rows.cell("keys"));
      return false;
    };
    if (any_word(rows.cell("frameworks"), add, '|')) return rows.error("frameworks").expected("known ones");
  }
}

// The needed paths that are not there: "a", "b or c".
std::string missing_keys(const JsonValue& root, std::string_view needs) {
  std::string missing;
  (void)any_word(needs, [&](std::string_view all) {
    if (all.front() == '!') {
      if (config_value(root, all.substr(1)) != nullptr) missing += "no " + std::string{all.substr(1)} + " ";
      return false;
    }
    const auto is_there = [&](std::string_view path) { return config_value(root, path) != nullptr; };
    if (!any_word(all, is_there, '|')) {
      for (const char c : all) missing += c == '|' ? std::string{" or "} : std::string{c};
      missing += ' ';
    }
    return false;
  });
  return missing.substr(0, missing.empty() ? 0 : missing.size() - 1);
}

struct Policy {
  std::string_view name, keeps, offloads;
};
constexpr std::string_view kQkv = "qkv", kAttention = "qkv attention_output",
                           kProducts = "qkv attention_output ffn_up ffn_down",
                           kAll = "qkv attention attention_output ffn_up ffn_down";
constexpr Policy kPolicies[] = {{"full", "", ""},
                                {"minimal", kProducts, ""},
                                {"minimal_with_context", kAll, ""},
                                {"minimal_flash", kAll, ""},
                                {"minimal_with_context_and_quantization", kAll, ""},
                                {"save_dot_with_context_except_mlp", "qkv attention attention_output", ""},
                                {"save_dot_except_mlp", kAttention, ""},
                                {"save_dot_except_mlpwi", "qkv attention_output ffn_down", ""},
                                {"save_qkv_proj", kQkv, ""},
                                {"save_out_proj", "attention_output", ""},
                                {"qkv_proj_offloaded", kQkv, kQkv},
                                {"minimal_offloaded", kProducts, kProducts}};

void use_custom_policy(ConfigWords& words) {
  JobSettings& s = words.settings;
  s.recompute_keeps = s.recompute_offloads = "";
  std::string& qkv = words.kept_qkv;
  const auto is_kept = [](const std::string& where) { return where == "device" || where == "offload"; };
  if (is_kept(words.kept_query) && is_kept(words.kept_key) && is_kept(words.kept_value))
    qkv = words.kept_query;
  const std::pair<std::string_view, const std::string*> results[] = {
      {"input", &words.kept_input},         {"qkv", &qkv},
      {"attention", &words.kept_attention}, {"attention_output", &words.kept_attention_output},
      {"ffn_up", &words.kept_ffn_up},       {"ffn_down", &words.kept_ffn_down}};
  for (const auto& [result, where] : results) {
    if (is_kept(*where)) *s.recompute_keeps += std::string{result} + " ";
    if (*where == "offload") *s.recompute_offloads += std::string{result} + " ";
  }
}

}  // namespace

std::span<const ConfigFramework> config_frameworks() {
  static const std::vector<ConfigFramework> kAll = as_shipped(read_frameworks());
  return kAll;
}

const JsonValue* config_value(const JsonValue& root, std::string_view path) {
  const JsonValue* at = &root;
  (void)any_word(
      path, [&](std::string_view key) { return (at = at->find(key)) == nullptr; }, '.');
  return at;
}

Result<const ConfigFramework*> framework_of(const JsonValue& root, const std::string& file) {
  const ConfigFramework* nearest = nullptr;
  std::ptrdiff_t most = 0;
  for (const ConfigFramework& framework : config_frameworks()) {
    if (missing_keys(root, framework.needs).empty()) return &framework;
    const auto hits = std::count_if(framework.rows.begin(), framework.rows.end(), [&](const ConfigRow& row) {
      return config_value(root, row.path) != nullptr;
    });
    if (hits > most) {
      most = hits;
      nearest = &framework;
    }
  }
  Error error = Error::at(file, "");
  struct Other {
    std::string_view keys, what, advice;
  };
  constexpr Other kOthers[] = {
      {"pipe_parallel_size|pipe-parallel-size|model_parallel_size|model-parallel-size",
       "a config of GPT-NeoX",
       "give its sizes and degrees as flags of Megatron-LM with --framework neox, and its DeepSpeed keys "
       "with "
       "--deepspeed"},
      {"train_micro_batch_size_per_gpu|zero_optimization|train_batch_size", "a DeepSpeed config",
       "give it with --deepspeed, together with a model"},
      {"distributed_type|compute_environment",
       "a config of Hugging Face's accelerate, which names no model and no batch",
       "give the arguments of the script, or --model, --gpus, --mbs, --gbs and --framework fsdp"},
      {"apiVersion", "a manifest of Kubernetes", "give the command that it runs with --command-line"},
      {"services", "a file of Docker Compose", "give the command that it runs with --command-line"},
      {"max_seq_len model.d_model", "a config of LLM Foundry",
       "give its sizes as flags of Megatron-LM with --framework fsdp"},
      {"model.hidden_dim", "a config of Levanter", "give its model with --model, and --framework maxtext"},
      {"resources run", "a task of SkyPilot", "give the command that it runs with --command-line"},
      {"num_hidden_layers|model_type", "a model's config.json", "give it with --model"}};
  for (const Other& other : kOthers)
    if (missing_keys(root, other.keys).empty())
      return std::move(error).found(std::string{other.what}).advice(std::string{other.advice});
  if (nearest != nullptr) {
    return std::move(error)
        .found(fmt::format("keys of {}", nearest->name))
        .expected(missing_keys(root, nearest->needs) + " together with them");
  }
  return std::move(error)
      .found("keys of no framework that is known")
      .expected(
          "a config of NeMo 2, Megatron-Bridge, Axolotl, LLaMA-Factory, TRL, Hugging Face's Trainer, "
          "Nanotron, torchtune or "
          "MaxText (docs/models.md)");
}

bool use_remat_policy(const std::string& name, ConfigWords& words) {
  JobSettings& s = words.settings;
  s.recompute = Recompute::full;
  if (name == "custom") {
    use_custom_policy(words);
    return true;
  }
  const auto* const known = std::ranges::find(kPolicies, name, &Policy::name);
  if (known == std::end(kPolicies)) return false;
  s.recompute_keeps = std::string{known->keeps};
  s.recompute_offloads = std::string{known->offloads};
  return true;
}

}  // namespace stepcast::detail

#include "stepcast/describe/detail/framework_rows.h"

#include <algorithm>
#include <iterator>
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

}  // namespace

std::span<const ConfigFramework> config_frameworks() {
  static const std::vector<ConfigFramework> kAll = as_shipped(read_frameworks());
  return kAll;
}

}  // namespace stepcast::detail

// The flags of Megatron-LM in tables: what each one sets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "stepcast/workload/layout.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

// Values that only make sense together, or have no field of their own.
struct MegatronScratch {
  std::int64_t query_groups = 0, layers_per_virtual_stage = 0, virtual_stages = 0, data_parallel = 0;
  std::int64_t global_batch = 0, recompute_layers = 1, zero_stage = -1;
  std::int64_t first_stage_layers = 0, last_stage_layers = 0;
  std::int64_t n_experts = 0, router_topk = 2, expert_ffn_hidden_size = 0, shared_ffn_hidden_size = 0;
  std::int64_t q_lora_rank = 0, kv_lora_rank = 0, qk_head_dim = 128, qk_pos_emb_head_dim = 64,
               v_head_dim = 128;
  std::int64_t bucket_parameters = 0, vocab_size = 0, padded_vocab_size = 0;
  std::int64_t bf16_first_layers = 1, bf16_last_layers = 1;
  double expert_capacity_factor = 0, clip_grad = 1;
  std::string position, normalization, recompute_granularity, recompute_method, recompute_modules, fp8_format,
      fp8_recipe, attention_backend, transformer_impl, optimizer, cp_comm_type, moe_layer_freq, tokenizer,
      window, sharding_strategy, token_dispatcher;
  bool group_query = false, rope = false, swiglu = false, squared_relu = false, no_linear_bias = false;
  bool add_qkv_bias = false, fp16 = false, bf16 = false, fp8_hybrid = false, fp8_e4m3 = false;
  bool grads_in_fp32 = false, reduce_in_bf16 = false, flash = false, legacy = false,
       distributed_optimizer = false;
  bool recompute_activations = false, checkpoint_activations = false, tp_pp_dp_order = false;
  bool account_for_embedding = false, account_for_loss = false, latent_attention = false;
  bool first_last_layers_bf16 = false, fsdp = false, no_async_tensor_parallel = false, no_p2p_overlap = false;
};

// A flag with a whole number, a number, a text or nothing, and the field it goes to.
template <class Field>
struct MegatronField {
  std::string_view name;
  Field field;
};
template <class Field>
struct MegatronSwitch {
  std::string_view name;
  Field field;
  bool value;
};

struct MegatronTables {
  std::span<const MegatronField<std::int64_t Transformer::*>> model_counts;
  std::span<const MegatronField<std::int64_t Degrees::*>> degrees;
  std::span<const MegatronField<std::int64_t Batch::*>> batch;
  std::span<const MegatronField<std::int64_t Software::*>> software_counts;
  std::span<const MegatronField<std::int64_t MegatronScratch::*>> scratch_counts;
  std::span<const MegatronField<double Transformer::*>> model_numbers;
  std::span<const MegatronField<double MegatronScratch::*>> scratch_numbers;
  std::span<const MegatronField<std::string MegatronScratch::*>> texts;
  std::span<const MegatronSwitch<bool Transformer::*>> model_switches;
  std::span<const MegatronSwitch<bool LayerChoices::*>> layer_switches;
  std::span<const MegatronSwitch<bool PipelineChoices::*>> pipeline_switches;
  std::span<const MegatronSwitch<bool ShardingChoices::*>> sharding_switches;
  std::span<const MegatronSwitch<bool FusedKernels::*>> fused_switches;
  std::span<const MegatronSwitch<bool LayerOverlap::*>> layer_overlap_switches;
  std::span<const MegatronSwitch<bool Fp8Recipe::*>> fp8_switches;
  std::span<const MegatronSwitch<bool OptimizerSetup::*>> optimizer_switches;
  std::span<const MegatronSwitch<bool MegatronScratch::*>> scratch_switches;
  std::span<const std::string_view> not_modelled;  // with any number of values
  std::span<const std::string_view> passed_over;   // likewise
};
[[nodiscard]] const MegatronTables& megatron_tables();

}  // namespace stepcast::detail

#include "stepcast/describe/detail/megatron_flags.h"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <vector>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/names.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/base/words.h"
#include "stepcast/describe/detail/optimizer_words.h"
#include "stepcast/describe/setting_groups.h"

namespace stepcast::detail {
namespace {

using S = JobSettings;
template <class Value>
using Words = std::pair<std::string_view, Value>;

constexpr Words<PositionEncoding> kPositions[] = {{"learned_absolute", PositionEncoding::learned},
                                                  {"rope", PositionEncoding::rotary},
                                                  {"mrope", PositionEncoding::rotary},
                                                  {"yarn", PositionEncoding::rotary},
                                                  {"alibi", PositionEncoding::alibi},
                                                  {"none", PositionEncoding::none}};
constexpr Words<NormKind> kNorms[] = {{"LayerNorm", NormKind::layer_norm},
                                      {"RMSNorm", NormKind::rms_norm},
                                      {"layernorm", NormKind::layer_norm},  // Megatron-DeepSpeed's
                                      {"rmsnorm", NormKind::rms_norm}};
constexpr Words<Recompute> kRecompute[] = {{"full", Recompute::full},
                                           {"selective", Recompute::selective},
                                           {"op", Recompute::selective_ops}};  // TorchTitan's
constexpr Words<bool> kRecomputeMethods[] = {{"uniform", false}, {"block", true}};
constexpr Words<bool> kFp8Formats[] = {{"e4m3", true}, {"hybrid", true}};
constexpr Words<Fp8Scaling> kFp8Recipes[] = {{"delayed", Fp8Scaling::delayed},
                                             {"tensorwise", Fp8Scaling::dynamic},
                                             {"rowwise", Fp8Scaling::rowwise},  // TorchTitan's
                                             {"blockwise", Fp8Scaling::blockwise},
                                             {"mxfp8", Fp8Scaling::mxfp8}};
constexpr Words<bool> kFp4Formats[] = {{"e2m1", true}};
constexpr Words<TokenDispatcher> kDispatchers[] = {{"alltoall", TokenDispatcher::all_to_all},
                                                   {"allgather", TokenDispatcher::all_gather},
                                                   {"flex", TokenDispatcher::deepep}};
constexpr Words<TokenDispatcher> kFlexDispatchers[] = {{"deepep", TokenDispatcher::deepep},
                                                       {"hybridep", TokenDispatcher::hybridep}};
constexpr Words<DType> kStateTypes[] = {
    {"fp32", DType::fp32}, {"bf16", DType::bf16}, {"fp16", DType::fp16}, {"fp8", DType::fp8}};
// auto: Transformer Engine takes a fused kernel.
constexpr Words<AttentionMethod> kAttentionBackends[] = {{"auto", AttentionMethod::flash},
                                                         {"flash", AttentionMethod::flash},
                                                         {"fused", AttentionMethod::flash},
                                                         {"unfused", AttentionMethod::unfused},
                                                         {"local", AttentionMethod::unfused}};
constexpr Words<ContextParallelKind> kContextKinds[] = {{"p2p", ContextParallelKind::ring},
                                                        {"a2a", ContextParallelKind::all_to_all},
                                                        {"all_gather", ContextParallelKind::all_gather}};
constexpr Words<Sharding> kShardingStrategies[] = {{"no_shard", Sharding::none},
                                                   {"optim", Sharding::zero1},
                                                   {"optim_grads", Sharding::zero2},
                                                   {"optim_grads_params", Sharding::zero3}};
constexpr Words<PipelineSchedule> kSchedules[] = {{"1f1b", PipelineSchedule::one_f_one_b},
                                                  {"gpipe", PipelineSchedule::gpipe},
                                                  {"zero-bubble", PipelineSchedule::zero_bubble_h1},
                                                  {"dualpipe", PipelineSchedule::dual_pipe},
                                                  {"zb-v", PipelineSchedule::zb_v},
                                                  {"v-half", PipelineSchedule::v_half},
                                                  {"v-min", PipelineSchedule::v_min}};

constexpr Words<bool> kSoftmaxTypes[] = {{"vanilla", false}, {"off-by-one", false}, {"learnable", true}};

constexpr MegatronSwitch<bool> on(std::optional<bool> S::*field) { return {field, true}; }
constexpr MegatronSwitch<bool> off(std::optional<bool> S::*field) { return {field, false}; }

// Flags that act. What is said twice is that of Megatron's configurations, which name it otherwise.
constexpr MegatronSettingFlag kSettings[] = {
    {"--num-layers", &S::n_layers},
    {"--encoder-num-layers", &S::n_layers},
    {"--decoder-num-layers", &S::decoder_layers},
    {"--decoder-seq-length", &S::decoder_tokens},
    {"--hybrid-layer-pattern", &S::hybrid_pattern},
    {"--hybrid-override-pattern", &S::hybrid_pattern},
    {"--hybrid-attention-ratio", &S::hybrid_attention_share},
    {"--hybrid-mlp-ratio", &S::hybrid_ffn_share},
    {"--is-hybrid-model", on(&S::hybrid)},
    {"--mamba-state-dim", &S::state_size},
    {"--mamba-head-dim", &S::state_head_dim},
    {"--mamba-num-groups", &S::state_groups},
    {"--mamba-num-heads", &S::state_heads},
    {"--experimental-attention-variant", &S::attention_variant},
    {"--linear-attention-freq", &S::linear_attention_pattern},
    {"--linear-conv-kernel-dim", &S::linear_kernel},
    {"--linear-key-head-dim", &S::linear_key_head_dim},
    {"--linear-value-head-dim", &S::linear_head_dim},
    {"--linear-num-key-heads", &S::linear_key_heads},
    {"--linear-num-value-heads", &S::linear_heads},
    {"--dsa-indexer-n-heads", &S::indexer_heads},
    {"--dsa-indexer-head-dim", &S::indexer_head_dim},
    {"--dsa-indexer-topk", &S::indexer_keys},
    {"--dsa-indexer-topk-freq", &S::indexer_every},
    {"--dsa-indexer-skip-topk-offset", &S::indexer_offset},
    {"--hidden-size", &S::hidden_size},
    {"--ffn-hidden-size", &S::ffn_hidden_size},
    {"--num-attention-heads", &S::n_heads},
    {"--kv-channels", &S::head_dim},
    {"--max-position-embeddings", &S::max_position},
    {"--mtp-num-layers", &S::n_multi_token_prediction_layers},
    {"--num-query-groups", &S::query_groups},
    {"--num-key-value-heads", &S::query_groups},  // Megatron-DeepSpeed's
    {"--vocab-size", &S::vocab_size},
    {"--padded-vocab-size", &S::padded_vocab_size},
    {"--rotary-percent", &S::rotary_fraction},
    {"--hidden-dropout", &S::hidden_dropout},
    {"--attention-dropout", &S::attention_dropout},
    {"--group-query-attention", on(&S::grouped_query)},
    {"--use-rotary-position-embeddings", on(&S::rotary_positions)},
    {"--swiglu", on(&S::swiglu)},
    {"--gated-linear-unit", on(&S::swiglu)},
    {"--quick-geglu", on(&S::gated_gelu)},
    {"--squared-relu", on(&S::squared_relu)},
    {"--disable-bias-linear", off(&S::linear_bias)},
    {"--add-bias-linear", on(&S::linear_bias)},
    {"--add-qkv-bias", on(&S::add_qkv_bias)},
    {"--untie-embeddings-and-output-weights", off(&S::tied_embeddings)},
    {"--share-embeddings-and-output-weights", on(&S::tied_embeddings)},
    {"--qk-layernorm", on(&S::qk_norm)},
    {"--attention-output-gate", on(&S::attention_output_gate)},
    {"--softmax-type", MegatronChoice<bool>{&S::attention_sinks, kSoftmaxTypes}},
    {"--no-position-embedding", off(&S::learned_positions)},
    {"--position-embedding-type", MegatronChoice<PositionEncoding>{&S::position, kPositions}},
    {"--normalization", MegatronChoice<NormKind>{&S::norm, kNorms}},
    {"--tokenizer-type", &S::tokenizer},
    {"--tokenizer-model", &S::tokenizer_model},
    {"--window-size", &S::window},
    {"--num-experts", &S::n_experts},
    {"--num-moe-experts", &S::n_experts},
    {"--moe-router-topk", &S::experts_per_token},
    {"--moe-ffn-hidden-size", &S::expert_ffn_hidden_size},
    {"--moe-shared-expert-intermediate-size", &S::shared_ffn_hidden_size},
    {"--moe-shared-expert-gate", on(&S::shared_expert_gate)},
    {"--moe-latent-size", &S::expert_latent_size},
    {"--moe-layer-freq", &S::moe_layer_pattern},
    {"--multi-latent-attention", on(&S::latent_attention)},
    {"--q-lora-rank", &S::q_lora_rank},
    {"--kv-lora-rank", &S::kv_lora_rank},
    {"--qk-head-dim", &S::qk_head_dim},
    {"--qk-pos-emb-head-dim", &S::qk_rope_head_dim},
    {"--v-head-dim", &S::v_head_dim},
    {"--tensor-model-parallel-size", &S::tensor},
    {"--model-parallel-size", &S::tensor},
    {"--pipeline-model-parallel-size", &S::pipeline},
    {"--context-parallel-size", &S::context},
    {"--data-parallel-size", &S::data},
    {"--expert-model-parallel-size", &S::expert},
    {"--expert-tensor-parallel-size", &S::expert_tensor},
    {"--num-virtual-stages-per-pipeline-rank", &S::virtual_stages},
    {"--virtual-pipeline-model-parallel-size", &S::virtual_stages},
    {"--num-layers-per-virtual-pipeline-stage", &S::layers_per_virtual_stage},
    {"--decoder-first-pipeline-num-layers", &S::first_stage_layers},
    {"--decoder-last-pipeline-num-layers", &S::last_stage_layers},
    {"--num-layers-in-first-pipeline-stage", &S::first_stage_layers},
    {"--num-layers-in-last-pipeline-stage", &S::last_stage_layers},
    {"--pipeline-model-parallel-layout", &S::pipeline_layout},
    {"--account-for-embedding-in-pipeline-split", on(&S::count_embedding_as_layer)},
    {"--account-for-loss-in-pipeline-split", on(&S::count_output_as_layer)},
    {"--use-tp-pp-dp-mapping", on(&S::pipeline_before_data)},
    {"--micro-batch-size", &S::micro_batch_sequences},
    {"--batch-size", &S::micro_batch_sequences},
    {"--global-batch-size", &S::global_batch_sequences},
    {"--seq-length", &S::seq_len_tokens},
    {"--encoder-seq-length", &S::seq_len_tokens},
    {"--fp16", MegatronSwitch<DType>{&S::dtype, DType::fp16}},
    {"--bf16", MegatronSwitch<DType>{&S::dtype, DType::bf16}},
    {"--fp8-format", MegatronChoice<bool>{&S::fp8, kFp8Formats}},
    {"--fp8", MegatronChoice<bool>{&S::fp8, kFp8Formats}},
    {"--fp8-hybrid", on(&S::fp8)},
    {"--fp8-e4m3", on(&S::fp8)},
    {"--accumulate-allreduce-grads-in-fp32", MegatronSwitch<DType>{&S::gradient_dtype, DType::fp32}},
    {"--grad-reduce-in-fp32", MegatronSwitch<DType>{&S::gradient_dtype, DType::fp32}},
    {"--grad-reduce-in-bf16", MegatronSwitch<DType>{&S::gradient_dtype, DType::bf16}},
    {"--fp8-recipe", MegatronChoice<Fp8Scaling>{&S::fp8_scaling, kFp8Recipes}},
    {"--no-fp8-wgrad", off(&S::fp8_weight_gradients)},
    {"--fp8-param-gather", on(&S::fp8_gather_weights)},
    {"--fp8-param", on(&S::fp8_gather_weights)},
    {"--fp8-dot-product-attention", on(&S::fp8_attention)},
    {"--fp8-multi-head-attention", on(&S::fp8_attention)},
    {"--first-last-layers-bf16", on(&S::fp8_spares_end_layers)},
    {"--num-layers-at-start-in-bf16", &S::fp8_spared_first_layers},
    {"--num-layers-at-end-in-bf16", &S::fp8_spared_last_layers},
    {"--fp4-format", MegatronChoice<bool>{&S::fp4, kFp4Formats}},
    {"--fp4", MegatronChoice<bool>{&S::fp4, kFp4Formats}},
    {"--main-grads-dtype", MegatronChoice<DType>{&S::gradient_dtype, kStateTypes}},
    {"--main-params-dtype", MegatronChoice<DType>{&S::master_dtype, kStateTypes}},
    {"--exp-avg-dtype", MegatronChoice<DType>{&S::moments_dtype, kStateTypes}},
    {"--sequence-parallel", on(&S::sequence_parallel)},
    {"--cp-comm-type", MegatronChoice<ContextParallelKind>{&S::context_parallel_kind, kContextKinds}},
    {"--moe-router-num-groups", &S::n_expert_groups},
    {"--moe-router-group-topk", &S::expert_groups_per_token},
    {"--moe-expert-capacity-factor", &S::expert_capacity_factor},
    {"--moe-pad-expert-input-to-capacity", on(&S::pad_experts_to_capacity)},
    {"--expert-load", &S::expert_load},
    {"--pipeline-schedule", MegatronChoice<PipelineSchedule>{&S::pipeline_schedule, kSchedules}},
    {"--moe-fp8-dispatch", on(&S::narrow_dispatch)},
    {"--activation-func-fp8-input-store", on(&S::narrow_activation_inputs)},
    {"--attention-backend", MegatronChoice<AttentionMethod>{&S::attention, kAttentionBackends}},
    {"--use-flash-attn", on(&S::flash_attention)},
    {"--use-flash-attn-v2", on(&S::flash_attention)},
    {"--use-legacy-models", on(&S::legacy_models)},
    {"--transformer-impl", &S::transformer_implementation},
    {"--recompute-granularity", MegatronChoice<Recompute>{&S::recompute, kRecompute}},
    {"--recompute-activations", on(&S::recompute_attention)},
    {"--checkpoint-activations", on(&S::checkpoint_layers)},
    {"--deepspeed-activation-checkpointing", on(&S::checkpoint_layers)},
    {"--recompute-modules", MegatronWordList{&S::recompute_modules}},
    {"--recompute-method", MegatronChoice<bool>{&S::recompute_by_block, kRecomputeMethods}},
    {"--activations-checkpoint-method", MegatronChoice<bool>{&S::recompute_by_block, kRecomputeMethods}},
    {"--recompute-num-layers", &S::recompute_layers},
    {"--activations-checkpoint-num-layers", &S::recompute_layers},
    {"--checkpoint-num-layers", &S::recompute_layers},
    {"--no-masked-softmax-fusion", off(&S::fuse_softmax)},
    {"--no-scaled-masked-softmax-fusion", off(&S::fuse_softmax)},
    {"--no-bias-gelu-fusion", off(&S::fuse_bias_activation)},
    {"--no-bias-swiglu-fusion", off(&S::fuse_bias_activation)},
    {"--bias-activation-fusion", on(&S::fuse_bias_activation)},
    {"--no-bias-dropout-fusion", off(&S::fuse_bias_dropout)},
    {"--no-rope-fusion", off(&S::fuse_rotary)},
    {"--cross-entropy-loss-fusion", on(&S::fuse_cross_entropy)},
    {"--moe-permute-fusion", on(&S::fuse_permutation)},
    {"--no-gradient-accumulation-fusion", off(&S::fuse_gradient_accumulation)},
    {"--tp-comm-overlap", on(&S::overlap_tensor_parallel)},
    // NeMo and Megatron Bridge overlap unless their configuration says no; Megatron-LM needs no such flag.
    {"--no-tp-comm-overlap", off(&S::overlap_tensor_parallel)},
    {"--delay-wgrad-compute", on(&S::delay_weight_gradient)},
    {"--moe-token-dispatcher-type", MegatronChoice<TokenDispatcher>{&S::dispatcher, kDispatchers}},
    {"--moe-flex-dispatcher-backend", MegatronChoice<TokenDispatcher>{&S::flex_dispatcher, kFlexDispatchers}},
    {"--moe-enable-deepep", MegatronSwitch<TokenDispatcher>{&S::flex_dispatcher, TokenDispatcher::deepep}},
    {"--cuda-graph-impl", &S::cuda_graph_implementation},
    {"--cuda-graph-scope", MegatronWordList{&S::cuda_graph_scope}},
    {"--cuda-graph-modules", MegatronWordList{&S::cuda_graph_scope}},
    {"--enable-cuda-graph", on(&S::cuda_graph_layers)},
    {"--external-cuda-graph", on(&S::cuda_graph_layers)},
    {"--cpu-offloading-num-layers", &S::activation_offload_layers},
    {"--fine-grained-activation-offloading", on(&S::offloads_modules)},
    {"--offload-modules", MegatronWordList{&S::offload_modules}},
    {"--moe-shared-expert-overlap", on(&S::overlap_shared_experts)},
    {"--overlap-moe-expert-parallel-comm", on(&S::overlap_expert)},
    {"--no-async-tensor-model-parallel-allreduce", off(&S::overlap_sequence_parallel_weight_gradient)},
    {"--overlap-p2p-communication", on(&S::overlap_p2p)},
    {"--no-overlap-p2p-communication", off(&S::overlap_p2p)},
    {"--no-scatter-gather-tensors-in-pipeline", off(&S::p2p_scatter_gather)},
    {"--overlap-grad-reduce", on(&S::overlap_gradient_reduce)},
    {"--overlap-param-gather", on(&S::overlap_parameter_gather)},
    {"--data-parallel-sharding-strategy", MegatronChoice<Sharding>{&S::sharding, kShardingStrategies}},
    {"--use-distributed-optimizer", on(&S::distributed_optimizer)},
    {"--num-distributed-optimizer-instances", &S::weight_copies},
    {"--use-torch-fsdp2", on(&S::fully_sharded)},
    {"--use-custom-fsdp", on(&S::fully_sharded)},
    {"--use-megatron-fsdp", on(&S::fully_sharded)},
    {"--zero-stage", &S::zero_stage},
    {"--ddp-bucket-size", &S::bucket_parameters},
    {"--bucket-size", &S::bucket_parameters},
    {"--make-vocab-size-divisible-by", &S::vocab_divisible_by},
    {"--optimizer", MegatronChoice<OptimizerKind>{&S::optimizer, kMegatronOptimizers}},
    {"--muon-num-ns-steps", &S::newton_schulz_iterations},
    {"--optimizer-cpu-offload", on(&S::optimizer_offload)},
    {"--cpu-optimizer", on(&S::optimizer_offload)},
    {"--clip-grad", &S::clip_gradients},
    {"--deterministic-mode", on(&S::deterministic)},
    {"--log-params-norm", on(&S::log_parameter_norm)},
    {"--log-num-zeros-in-grad", on(&S::log_gradient_zeros)},
    {"--eval-interval", &S::evaluation_interval},
    {"--eval-iters", &S::evaluation_batches},
    {"--save-interval", &S::save_interval},
    {"--async-save", on(&S::saves_asynchronously)},
    {"--frozen-base", on(&S::frozen_base)},
    {"--lora-rank", &S::lora_rank},
    {"--lora-target-modules", MegatronWordList{&S::lora_targets}},
    {"--reference-model", on(&S::reference_model)},
    {"--dpo", on(&S::reference_model)},
    {"--packed-mean-tokens", &S::packed_mean_tokens},
    {"--framework-date", &S::framework_date},
    {"--predicted-token-share", &S::predicted_token_share},
};

// Flags whose argument, the name of their field, is called otherwise.
constexpr std::pair<std::string_view, std::string_view> kArguments[] = {
    {"--disable-bias-linear", "add_bias_linear"},
    {"--no-masked-softmax-fusion", "masked_softmax_fusion"},
    {"--no-scaled-masked-softmax-fusion", "scaled_masked_softmax_fusion"},
    {"--no-bias-gelu-fusion", "bias_gelu_fusion"},
    {"--no-bias-swiglu-fusion", "bias_swiglu_fusion"},
    {"--no-bias-dropout-fusion", "bias_dropout_fusion"},
    {"--no-rope-fusion", "apply_rope_fusion"},
    {"--no-gradient-accumulation-fusion", "gradient_accumulation_fusion"},
    {"--no-async-tensor-model-parallel-allreduce", "async_tensor_model_parallel_allreduce"},
    {"--no-overlap-p2p-communication", "overlap_p2p_comm"},
    {"--no-scatter-gather-tensors-in-pipeline", "scatter_gather_tensors_in_pipeline"},
    {"--no-fp8-wgrad", "fp8_wgrad"},
    {"--overlap-p2p-communication", "overlap_p2p_comm"},
    {"--fp8-format", "fp8"},
    {"--fp4-format", "fp4"},
    {"--num-virtual-stages-per-pipeline-rank", "virtual_pipeline_model_parallel_size"},
};

constexpr MegatronFlagRow kSwitchedOff{MegatronFlagUse::passed_over, "switched off, the default", ""};

const MegatronSettingFlag* find_setting(std::string_view name) {
  const auto* const found = std::ranges::find(kSettings, name, &MegatronSettingFlag::name);
  return found == std::end(kSettings) ? nullptr : found;
}

// All the others, a row for each reason (tables/megatron_flags.csv).
Result<std::vector<MegatronFlagRow>> read_flag_rows() {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table("megatron_flags.csv"), "megatron_flags.csv"));
  constexpr auto kUses =
      names<MegatronFlagUse::out_of_scope>({"understood", "passed_over", "not_modelled", "out_of_scope"});
  std::vector<MegatronFlagRow> all;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return all;
    const auto use = kUses.find(rows.cell("use"));
    if (!use) return rows.error("use").expected("not_modelled, out_of_scope or passed_over");
    all.push_back({*use, rows.cell("why"), rows.cell("names")});
  }
}

// Exact names hold over patterns, longer patterns over shorter ones.
const MegatronFlagRow* find_row(std::string_view name) {
  const MegatronFlagRow* best = nullptr;
  std::size_t length = 0;  // of the pattern
  for (const MegatronFlagRow& row : megatron_flag_rows()) {
    bool is_exact = false;
    each_name(row, [&](std::string_view known) {
      is_exact = is_exact || known == name;
      if (!known.ends_with('*') || known.size() <= length) return;
      if (!name.starts_with(known.substr(0, known.size() - 1))) return;
      best = &row;
      length = known.size();
    });
    if (is_exact) return &row;
  }
  return best;
}

// A name of its type for each member: g++ 12 takes decltype of what an outer lambda captures for another type.
template <class Group, class Field>
bool holds_member(const Group& group, Field field) {
  bool found = false;
  group.each([&]<class Member>(Member member) {
    if constexpr (std::is_same_v<Member, Field>) found = found || member == field;
  });
  return found;
}

// Of which part of a description a member is.
std::string_view part_of(const MegatronSetting& setting) {
  return with_member(setting, [](auto field) -> std::string_view {
    if (holds_member(setting_groups::kModel, field)) return "the model";
    if (holds_member(setting_groups::kKept, field)) return "how it is computed, batches and the optimizer";
    return "how it is spread over GPUs, and recomputation";
  });
}

}  // namespace

std::span<const MegatronSettingFlag> megatron_setting_flags() { return kSettings; }
std::span<const MegatronFlagRow> megatron_flag_rows() {
  static const std::vector<MegatronFlagRow> kRows = as_shipped(read_flag_rows());
  return kRows;
}

std::string argument_of(std::string_view flag) {
  for (const auto& [name, argument] : kArguments) {
    if (name == flag) return std::string{argument};
  }
  std::string argument{flag.substr(2)};
  std::replace(argument.begin(), argument.end(), '-', '_');
  return argument;
}

bool switches_off(std::string_view flag) {
  return flag == "--disable-bias-linear" || (flag.starts_with("--no-") && flag != "--no-persist-layer-norm");
}

FoundMegatronFlag find_megatron_flag(std::string_view flag) {
  if (const MegatronSettingFlag* setting = find_setting(flag)) return {.setting = setting};
  if (!flag.starts_with("--")) return {};
  const std::string_view name = flag.substr(2);
  const bool is_off = name.starts_with("no-");
  const std::string other = is_off ? "--" + std::string{name.substr(3)} : "--no-" + std::string{name};
  const MegatronFlagRow* row = find_row(name);
  if (row != nullptr) return {.row = row};
  if (const MegatronSettingFlag* setting = find_setting(other);
      setting != nullptr && std::holds_alternative<MegatronSwitch<bool>>(setting->setting)) {
    return {.setting = setting, .opposite = true};
  }
  const std::string argument = argument_of(flag);
  for (const auto& [known, of] : kArguments) {
    if (of == argument) return {.setting = find_setting(known), .opposite = switches_off(known)};
  }
  return {.row = find_row(std::string_view{other}.substr(2)) != nullptr ? &kSwitchedOff : nullptr};
}

}  // namespace stepcast::detail

namespace stepcast {

std::vector<MegatronFlag> megatron_flags() {
  std::vector<MegatronFlag> flags;
  for (const detail::MegatronSettingFlag& flag : detail::megatron_setting_flags()) {
    flags.push_back({std::string{flag.name}, MegatronFlagUse::understood, detail::part_of(flag.setting)});
  }
  for (const detail::MegatronFlagRow& row : detail::megatron_flag_rows()) {
    detail::each_name(row, [&](std::string_view name) {
      flags.push_back({"--" + std::string{name}, row.use, row.why});
    });
  }
  return flags;
}

std::optional<MegatronFlagUse> use_of_megatron_flag(std::string_view flag) {
  const detail::FoundMegatronFlag found = detail::find_megatron_flag(flag);
  if (found.setting != nullptr) return MegatronFlagUse::understood;
  return found.row != nullptr ? std::optional{found.row->use} : std::nullopt;
}

}  // namespace stepcast

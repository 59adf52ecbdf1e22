// Groups of the members of JobSettings. The group of a member determines what a layout search does with it.
// Each member belongs to exactly one group; a member in no group or in two does not compile.
//
//   setting_groups::kSearched.each([&](auto member) { (settings.*member).reset(); });
//   setting_named("tensor")    // &JobSettings::tensor, for tables that are read as data
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "stepcast/base/named_members.h"
#include "stepcast/describe/job.h"

namespace stepcast {

namespace setting_groups {
using S = JobSettings;

// Settings of the model. A search keeps them.
STEPCAST_MEMBERS(kModel, &S::decoder_layers, &S::decoder_tokens, &S::n_layers, &S::hidden_size,
                 &S::ffn_hidden_size, &S::n_heads, &S::head_dim, &S::max_position,
                 &S::n_multi_token_prediction_layers, &S::query_groups, &S::vocab_size, &S::padded_vocab_size,
                 &S::rotary_fraction, &S::hidden_dropout, &S::attention_dropout, &S::grouped_query,
                 &S::rotary_positions, &S::swiglu, &S::squared_relu, &S::linear_bias, &S::add_qkv_bias,
                 &S::tied_embeddings, &S::qk_norm, &S::position, &S::norm, &S::tokenizer, &S::window,
                 &S::n_experts, &S::experts_per_token, &S::expert_ffn_hidden_size, &S::shared_ffn_hidden_size,
                 &S::n_expert_groups, &S::expert_groups_per_token, &S::moe_layer_pattern, &S::multi_latent,
                 &S::q_lora_rank, &S::kv_lora_rank, &S::qk_head_dim, &S::qk_rope_head_dim, &S::v_head_dim,
                 &S::tokenizer_model, &S::shared_expert_gate, &S::expert_latent_size, &S::gated_gelu,
                 &S::attention_output_gate, &S::attention_sinks, &S::learned_positions, &S::hybrid_pattern,
                 &S::hybrid_attention_share, &S::hybrid_ffn_share, &S::hybrid, &S::state_size,
                 &S::state_head_dim, &S::state_groups, &S::state_heads, &S::attention_variant,
                 &S::linear_attention_pattern, &S::linear_kernel, &S::linear_key_head_dim,
                 &S::linear_head_dim, &S::linear_key_heads, &S::linear_heads, &S::indexer_heads,
                 &S::indexer_head_dim, &S::indexer_keys, &S::indexer_every, &S::indexer_offset);

// Settings that a layout search chooses (plan/layout_point.h), in all their spellings.
STEPCAST_MEMBERS(kSearched, &S::tensor, &S::pipeline, &S::context, &S::expert, &S::expert_tensor,
                 &S::virtual_stages, &S::micro_batch_sequences, &S::sequence_parallel, &S::fp8, &S::fp4,
                 &S::recompute, &S::recompute_attention, &S::checkpoint_layers, &S::recompute_by_block,
                 &S::sharding, &S::distributed_optimizer, &S::fully_sharded, &S::zero_stage);

// Details of a searched setting: they have a meaning only for one of its choices.
STEPCAST_MEMBERS(kOfSearched, &S::recompute_layers, &S::recompute_modules, &S::recompute_keeps,
                 &S::recompute_offloads);

// Settings that depend on the searched degrees.
STEPCAST_MEMBERS(kOfDegrees, &S::data, &S::layers_per_virtual_stage, &S::first_stage_layers,
                 &S::last_stage_layers, &S::pipeline_layout, &S::weight_copies);

// Settings that a search keeps as given.
STEPCAST_MEMBERS(
    kKept, &S::count_embedding_as_layer, &S::count_output_as_layer, &S::pipeline_schedule,
    &S::pipeline_before_data, &S::global_batch_sequences, &S::seq_len_tokens, &S::dtype, &S::master_dtype,
    &S::moments_dtype, &S::gradient_dtype, &S::fp8_scaling, &S::fp8_weight_gradients, &S::fp8_gather_weights,
    &S::fp8_attention, &S::fp8_spares_end_layers, &S::fp8_spared_first_layers, &S::fp8_spared_last_layers,
    &S::context_parallel_kind, &S::expert_capacity_factor, &S::pad_experts_to_capacity, &S::expert_load,
    &S::attention, &S::flash_attention, &S::legacy_models, &S::transformer_implementation,
    &S::cuda_graph_implementation, &S::cuda_graph_scope, &S::cuda_graph_layers, &S::activation_offload_layers,
    &S::offloads_modules, &S::offload_modules, &S::fuse_softmax, &S::fuse_bias_activation,
    &S::fuse_bias_dropout, &S::fuse_rotary, &S::fuse_cross_entropy, &S::fuse_gradient_accumulation,
    &S::fuse_permutation, &S::overlap_tensor_parallel, &S::overlap_expert, &S::overlap_shared_experts,
    &S::overlap_sequence_parallel_weight_gradient, &S::delay_weight_gradient, &S::narrow_dispatch,
    &S::narrow_activation_inputs, &S::dispatcher, &S::flex_dispatcher, &S::frozen_base, &S::lora_rank,
    &S::lora_dropout, &S::lora_targets, &S::lora_base_weights, &S::reference_model, &S::packed_mean_tokens,
    &S::predicted_token_share, &S::overlap_p2p, &S::p2p_scatter_gather, &S::overlap_gradient_reduce,
    &S::overlap_parameter_gather, &S::bucket_parameters, &S::vocab_divisible_by, &S::optimizer,
    &S::newton_schulz_iterations, &S::optimizer_offload, &S::clip_gradients, &S::log_parameter_norm,
    &S::log_gradient_zeros, &S::deterministic, &S::fp32_convolutions, &S::framework_date,
    &S::evaluation_interval, &S::evaluation_batches, &S::save_interval, &S::saves_asynchronously);

inline constexpr auto kAll = kModel + kSearched + kOfSearched + kOfDegrees + kKept;

namespace detail {

// Inheriting from one Tag per member: a member that is listed twice is a duplicate base, a compile error.
template <auto Member>
struct Tag {};
template <auto... Members>
struct Tags : Tag<Members>... {};
template <auto... Members>
constexpr std::size_t n_distinct(MemberList<Members...>) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): asks the compiler for the whole type, which refuses a member listed twice
  return sizeof(Tags<Members...>) > 0 ? sizeof...(Members) : 0;
}

// Converts to any optional, so that the number of members of JobSettings can be tested by aggregate
// initialisation.
struct AnySetting {
  template <class T>
  operator std::optional<T>() const;  // NOLINT(google-explicit-constructor)
};
template <std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { JobSettings{((void)I, AnySetting{})...}; };
}

}  // namespace detail

// JobSettings can be initialised with as many values as the groups have members, and not with one more.
static_assert(detail::takes(std::make_index_sequence<detail::n_distinct(kAll)>{}) &&
                  !detail::takes(std::make_index_sequence<kAll.size + 1>{}),
              "every member of JobSettings belongs into one of these groups");

}  // namespace setting_groups

// A pointer to a member of JobSettings, for each type of value.
template <class Value>
using SettingOf = std::optional<Value> JobSettings::*;
using SettingMember =
    std::variant<SettingOf<bool>, SettingOf<std::int64_t>, SettingOf<double>, SettingOf<std::string>,
                 SettingOf<DType>, SettingOf<PositionEncoding>, SettingOf<NormKind>, SettingOf<Fp8Scaling>,
                 SettingOf<AttentionMethod>, SettingOf<ContextParallelKind>, SettingOf<Recompute>,
                 SettingOf<Sharding>, SettingOf<PipelineSchedule>, SettingOf<OptimizerKind>,
                 SettingOf<TokenDispatcher>>;
// The member with this name; nothing if there is none. The table is built on the first call.
[[nodiscard]] std::optional<SettingMember> setting_named(std::string_view name);

}  // namespace stepcast

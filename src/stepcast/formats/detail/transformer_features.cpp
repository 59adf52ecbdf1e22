#include "stepcast/formats/detail/transformer_features.h"

#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "stepcast/base/named_members.h"
#include "stepcast/workload/modules/attention_module.h"

namespace stepcast::detail {
namespace {

// Members of Transformer and MixtureOfExperts that tables may set, by their names.
using T = Transformer;
using M = MixtureOfExperts;

STEPCAST_MEMBERS(kFeatures, &T::architecture, &T::norm, &T::activation, &T::position, &T::mixer, &T::n_layers,
                 &T::hidden_size, &T::ffn_hidden_size, &T::n_heads, &T::n_kv_heads, &T::head_dim,
                 &T::vocab_size, &T::max_position, &T::residual_streams, &T::head_bias, &T::mlm_head,
                 &T::unused_positions, &T::norm_bias, &T::norm_weights, &T::norms_per_layer, &T::final_norm,
                 &T::embedding_norm, &T::qk_norm, &T::qk_norm_spans_heads, &T::gated_ffn,
                 &T::activation_parameters, &T::rotary_fraction, &T::parallel_residual, &T::tied_embeddings,
                 &T::qkv_bias, &T::attention_output_bias, &T::ffn_bias, &T::sliding_window_tokens,
                 &T::global_attention_every_n_layers, &T::attention_sinks, &T::attention_output_gate,
                 &T::gate_per_head, &T::attends_beside, &T::attention_softcap, &T::logit_softcap,
                 &T::hidden_dropout, &T::attention_dropout, &T::n_token_types, &T::pooler,
                 &T::n_multi_token_prediction_layers);
STEPCAST_MEMBERS(kMoe, &M::n_experts, &M::experts_per_token, &M::expert_ffn_hidden_size, &M::n_shared_experts,
                 &M::shared_ffn_hidden_size, &M::shared_expert_gate, &M::router_bias, &M::n_groups,
                 &M::groups_per_token, &M::first_dense_layers, &M::moe_every_n_layers);

// Reads an optional part of the model from the section `key`.
template <class List, class Part>
Status read_feature(ObjectReader& keys, std::string_view key, const List& members, std::optional<Part>& out) {
  STEPCAST_ASSIGN(auto section, keys.section(key));
  if (!section) return Ok{};
  STEPCAST_TRY(read_members(*section, members, out.emplace()));
  return section->finish();
}

}  // namespace

Status read_features(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_members(keys, kFeatures, model));
  STEPCAST_TRY(read_feature(keys, "moe", kMoe, model.moe));
  // A section with sizes for the kind of attention, such as "latent_attention". A model has at most one.
  for (const AttentionModule* module : attention_modules()) {
    const std::string name = fmt::format("{}_attention", module->traits().name);
    STEPCAST_ASSIGN(auto section, keys.section(name));
    if (!section) continue;
    model.attention = {.module = module};
    for (std::size_t i = 0; i < module->traits().sizes.size(); ++i)
      STEPCAST_TRY(section->optional(module->traits().sizes[i].key, model.attention.sizes[i]));
    STEPCAST_TRY(section->finish());
  }
  return Ok{};
}

}  // namespace stepcast::detail

#include "stepcast/describe/detail/huggingface_rows.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/describe/detail/huggingface_readers.h"
#include "stepcast/describe/detail/hybrid_layers.h"

namespace stepcast::detail {
namespace {

using FeedForward = LayerKind::FeedForward;

// What a word of a pattern says of a layer of two parts; a letter is of one part (hybrid_layers.h).
struct LayerWord {
  std::string_view word;
  Mixer mixer;
  bool sliding;
};
constexpr LayerWord kLayerWords[] = {{"full_attention", Mixer::attention, false},
                                     {"sliding_attention", Mixer::attention, true},
                                     {"linear_attention", Mixer::gated_delta, false},
                                     {"0", Mixer::attention, false},
                                     {"1", Mixer::attention, true}};

// Of files that only say how far apart layers with full attention are (Qwen3-Next).
Result<std::vector<std::string>> words_by_interval(ObjectReader& keys, std::int64_t n_layers) {
  std::int64_t every = 0;
  STEPCAST_TRY(keys.required("full_attention_interval", every));
  constexpr std::int64_t kMostLayers = 1'000'000;
  if (every < 1 || n_layers > kMostLayers) {
    return keys.error("full_attention_interval").found(fmt::format("{}", every)).expected("1 or more");
  }
  std::vector<std::string> words;
  for (std::int64_t layer = 1; layer <= n_layers; ++layer) {
    words.emplace_back(layer % every == 0 ? "full_attention" : "linear_attention");
  }
  return words;
}

// One word per layer, from a list of words or numbers or from a text of letters.
Result<std::vector<std::string>> read_words(ObjectReader& keys, std::string_view key, std::int64_t n_layers) {
  const JsonValue* list = keys.take(key);
  if (list == nullptr && keys.has("full_attention_interval")) return words_by_interval(keys, n_layers);
  if (list == nullptr || list->is_null()) {
    return keys.error("", fmt::format("`{}` is missing", key)).expected("what each of the layers is");
  }
  std::vector<std::string> words;
  if (list->is_text()) {
    for (const char letter : list->text()) words.emplace_back(1, letter);
  } else if (list->is_array()) {
    for (const JsonValue& item : list->items())
      words.push_back(item.is_text() ? item.text() : describe_value(item));
  }
  if (static_cast<std::int64_t>(words.size()) != n_layers) {
    return keys.error(key)
        .found(fmt::format("{} layers", words.size()))
        .expected(fmt::format("as many as num_hidden_layers, {}", n_layers));
  }
  return words;
}

Status optional_size(ObjectReader& keys, std::string_view key, std::int64_t& out) {
  return key.empty() ? Status{Ok{}} : keys.optional(key, out);
}

Status read_attention_keys(ObjectReader& keys, const AttentionKeys& names, LayerKind& kind) {
  STEPCAST_TRY(optional_size(keys, names.n_heads, kind.n_heads));
  STEPCAST_TRY(optional_size(keys, names.n_kv_heads, kind.n_kv_heads));
  STEPCAST_TRY(optional_size(keys, names.head_dim, kind.head_dim));
  STEPCAST_TRY(optional_size(keys, names.v_head_dim, kind.v_head_dim));
  if (!names.sinks.empty()) STEPCAST_TRY(keys.optional(names.sinks, kind.attention_sinks));
  return names.values_are_keys.empty() ? Status{Ok{}}
                                       : keys.optional(names.values_are_keys, kind.values_are_keys);
}

Status read_expert_sizes(ObjectReader& keys, const ExpertKeys& names, Transformer& model) {
  bool on = true;
  if (!names.switch_key.empty()) STEPCAST_TRY(keys.optional(names.switch_key, on));
  if (names.n_experts.empty() || !on || !keys.has(names.n_experts)) return Ok{};
  MixtureOfExperts moe;
  STEPCAST_TRY(keys.required(names.n_experts, moe.n_experts));
  STEPCAST_TRY(keys.required(names.per_token, moe.experts_per_token));
  STEPCAST_TRY(keys.required(names.width, moe.expert_ffn_hidden_size));
  STEPCAST_TRY(optional_size(keys, names.n_shared, moe.n_shared_experts));
  STEPCAST_TRY(optional_size(keys, names.shared_width, moe.shared_ffn_hidden_size));
  STEPCAST_TRY(optional_size(keys, names.latent_size, moe.latent_size));
  STEPCAST_TRY(keys.optional("n_group", moe.n_groups));
  moe.groups_per_token = moe.n_groups = std::max<std::int64_t>(1, moe.n_groups);
  STEPCAST_TRY(keys.optional("topk_group", moe.groups_per_token));
  if (names.dense_beside) {
    model.norms_per_layer = 7;
    moe.n_shared_experts = 1;
    moe.shared_ffn_hidden_size = model.ffn_hidden_size;
  } else if (names.n_shared.empty()) {
    moe.n_shared_experts = moe.shared_ffn_hidden_size > 0 ? 1 : 0;
  } else if (moe.n_shared_experts > 0 && names.shared_width.empty()) {
    moe.shared_ffn_hidden_size = moe.expert_ffn_hidden_size;
  }
  moe.shared_expert_gate = names.shared_gate && moe.n_shared_experts > 0;
  // The router of Gemma 4 has a scale of each element and of each expert: as many as such a gate and such biases.
  if (names.dense_beside) moe.shared_expert_gate = moe.router_bias = true;
  model.moe = moe;
  return Ok{};
}

// Which layers may have experts.
Result<std::vector<bool>> read_expert_layers(ObjectReader& keys, const ExpertKeys& names,
                                             const Transformer& model) {
  std::vector<bool> has(static_cast<std::size_t>(model.n_layers),
                        model.moe.has_value());  // as words: no more
  std::int64_t dense = 0;
  STEPCAST_TRY(optional_size(keys, names.first_dense, dense));
  for (std::int64_t layer = 0; layer < std::min(dense, model.n_layers); ++layer) {
    has[static_cast<std::size_t>(layer)] = false;
  }
  if (names.layers.empty()) return has;
  STEPCAST_ASSIGN(const std::vector<std::string> list, read_words(keys, names.layers, model.n_layers));
  for (std::size_t layer = 0; layer < list.size(); ++layer) {
    if (list[layer] != "0" && list[layer] != "1") {
      return keys.error(names.layers).found(list[layer].substr(0, 60)).expected("0 or 1 for each layer");
    }
    has[layer] = model.moe && list[layer] == "1";
  }
  return has;
}

Status read_state(ObjectReader& keys, const StateKeys& names, Transformer& model) {
  if (names.n_heads.empty()) return Ok{};
  StateMixer state;
  STEPCAST_TRY(keys.required(names.n_heads, state.n_heads));
  STEPCAST_TRY(keys.required(names.head_dim, state.head_dim));
  STEPCAST_TRY(keys.required(names.n_key_heads, state.n_key_heads));
  STEPCAST_TRY(keys.required(names.key_head_dim, state.key_head_dim));
  STEPCAST_TRY(optional_size(keys, names.conv_kernel, state.conv_kernel));
  STEPCAST_TRY(optional_size(keys, names.chunk_tokens, state.chunk_tokens));
  if (!names.conv_bias.empty()) STEPCAST_TRY(keys.optional(names.conv_bias, state.conv_bias));
  model.state_mixer = state;
  return Ok{};
}

Status read_pattern(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  STEPCAST_ASSIGN(const std::vector<std::string> words, read_words(keys, row.pattern, model.n_layers));
  STEPCAST_ASSIGN(const std::vector<bool> experts, read_expert_layers(keys, row.experts, model));
  LayerKind full, sliding;
  STEPCAST_TRY(read_attention_keys(keys, row.full, full));
  STEPCAST_TRY(read_attention_keys(keys, row.sliding, sliding));
  STEPCAST_TRY(keys.optional("sliding_window", sliding.window_tokens));
  for (std::size_t layer = 0; layer < words.size(); ++layer) {
    const auto* word = std::find_if(std::begin(kLayerWords), std::end(kLayerWords),
                                    [&](const LayerWord& known) { return known.word == words[layer]; });
    std::optional<LayerKind> one_part;
    if (words[layer].size() == 1) one_part = kind_of_letter(words[layer].front());
    const bool is_word = word != std::end(kLayerWords);
    const Mixer mixer = is_word ? word->mixer : one_part ? one_part->mixer : Mixer::none;
    const bool has_state = mixer == Mixer::gated_delta || mixer == Mixer::mamba2;
    if ((!is_word && !one_part) || (has_state && row.state.n_heads.empty())) {
      return keys.error(row.pattern, fmt::format("layer {} is of a kind that is not modelled", layer))
          .found(fmt::format("`{}`", words[layer].substr(0, 60)));
    }
    LayerKind kind = mixer != Mixer::attention ? LayerKind{} : is_word && word->sliding ? sliding : full;
    kind.mixer = mixer;
    kind.feed_forward = !is_word         ? one_part->feed_forward
                        : experts[layer] ? FeedForward::experts
                                         : FeedForward::dense;
    append_layer(model, kind);
  }
  return Ok{};
}

Status read_further_pattern(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  std::string letters;
  if (row.further_pattern.empty() || !keys.has(row.further_pattern)) return Ok{};
  STEPCAST_TRY(keys.optional(row.further_pattern, letters));
  if (model.n_multi_token_prediction_layers == 0 || set_further_layers(model, letters)) return Ok{};
  return keys.error(row.further_pattern)
      .found(fmt::format("`{}`", letters.substr(0, 60)))
      .expected(fmt::format("letters of layers that {} has", row.pattern));
}

// Off: false, 0, nothing.
Status refuse_what_is_on(const FamilyRow& row, ObjectReader& keys) {
  for (const std::string_view key : row.must_be_off) {
    const JsonValue* value = keys.take(key);
    if (value == nullptr || value->is_null() || (value->is_array() && value->items().empty())) continue;
    const std::string said = describe_value(*value);
    if (said == "false" || said == "0" || said == "0.0") continue;
    return keys.error(key, "this part is not modelled").found(said).expected("nothing, false or 0");
  }
  return Ok{};
}

// DeciLM: a share of two thirds of the width, in steps of 256.
std::int64_t width_of_multiple(double multiple, std::int64_t hidden_size) {
  const auto width = static_cast<std::int64_t>(2 * multiple * static_cast<double>(hidden_size) / 3);
  return (width + 255) / 256 * 256;
}

Status read_searched_block(const ObjectReader& keys, const JsonValue& block, const Transformer& model,
                           LayerKind& kind) {
  STEPCAST_ASSIGN(ObjectReader parts,
                  ObjectReader::of(block, "block_configs", keys.file(), NullMeans::absent));
  STEPCAST_ASSIGN(auto attention, parts.section("attention"));
  STEPCAST_ASSIGN(auto ffn, parts.section("ffn"));
  if (!attention || !ffn) return parts.error("", "`attention` or `ffn` of a layer is missing");
  bool no_attention = false, no_ffn = false;
  std::int64_t group = 1;
  STEPCAST_TRY(attention->optional("no_op", no_attention));
  STEPCAST_TRY(attention->optional("n_heads_in_group", group));
  STEPCAST_TRY(attention->optional("window_length", kind.window_tokens));
  STEPCAST_TRY(
      refuse_if_true(*attention, "replace_with_linear", "attention that is one matrix is not modelled"));
  STEPCAST_TRY(refuse_if_true(*attention, "unshifted_sink", "sinks of attention are not modelled here"));
  (void)attention->take("use_prefill_window_in_sink_attention");  // how it generates
  STEPCAST_TRY(attention->finish());
  double multiple = 0;
  STEPCAST_TRY(ffn->optional("no_op", no_ffn));
  STEPCAST_TRY(ffn->optional("ffn_mult", multiple));
  STEPCAST_TRY(refuse_if_true(*ffn, "replace_with_linear", "an FFN that is one matrix is not modelled"));
  STEPCAST_TRY(ffn->finish());
  STEPCAST_TRY(parts.finish());
  constexpr double kWidest = 1000;
  if (group < 1 || !(multiple >= 0 && multiple <= kWidest)) {
    return parts.error("", "a layer without a size").expected("n_heads_in_group and ffn_mult above 0");
  }
  kind.mixer = no_attention ? Mixer::none : Mixer::attention;
  if (!no_attention) kind.n_kv_heads = std::max<std::int64_t>(1, model.n_heads / group);
  kind.feed_forward = no_ffn ? FeedForward::none : FeedForward::dense;
  if (!no_ffn) kind.ffn_hidden_size = width_of_multiple(multiple, model.hidden_size);
  return Ok{};
}

constexpr std::string_view kMiniMaxNoShape[] = {
    "rotary_dim", "qk_norm_type",           "use_routing_bias",
    "use_mtp",    "mtp_transformer_layers", "layernorm_full_attention_beta"};
constexpr std::string_view kMiniMaxOff[] = {"shared_intermediate_size"};
constexpr std::string_view kMiMoNoShape[] = {"swa_rope_theta",       "sliding_window_size",
                                             "attention_chunk_size", "attention_value_scale",
                                             "layernorm_epsilon",    "topk_method"};
constexpr std::string_view kStepNoShape[] = {"use_moe_router_bias", "moe_router_scaling_factor"};
constexpr std::string_view kGemma4NoShape[] = {"use_bidirectional_attention", "vocab_size_per_layer_input"};
constexpr std::string_view kGemma4Off[] = {"num_kv_shared_layers", "hidden_size_per_layer_input",
                                           "use_double_wide_mlp"};
constexpr std::string_view kQwen35NoShape[] = {"full_attention_interval", "mamba_ssm_dtype"};
constexpr std::string_view kQwen35Off[] = {"mlp_only_layers", "mtp_use_dedicated_embeddings"};
constexpr std::string_view kNemotronHNoShape[] = {
    "mamba_hidden_act",         "mamba_ssm_cache_dtype", "num_logits_to_keep", "rescale_prenorm_residual",
    "residual_in_fp32",         "time_step_floor",       "time_step_max",      "time_step_min",
    "time_step_limit",          "use_mamba_kernels",     "sliding_window",     "expand",
    "moe_shared_expert_overlap"};
constexpr std::string_view kNemotronHOff[] = {"use_bias", "mamba_proj_bias"};

constexpr StateKeys kDeltaKeys{.n_heads = "linear_num_value_heads",
                               .head_dim = "linear_value_head_dim",
                               .n_key_heads = "linear_num_key_heads",
                               .key_head_dim = "linear_key_head_dim",
                               .conv_kernel = "linear_conv_kernel_dim"};
constexpr ExpertKeys kQwenExperts{.n_experts = "num_experts",
                                  .per_token = "num_experts_per_tok",
                                  .width = "moe_intermediate_size",
                                  .shared_width = "shared_expert_intermediate_size",
                                  .shared_gate = true};

std::vector<FamilyRow> linear_attention_rows() {
  // The output of attention is gated, a layer with linear attention has gates of its own; experts need no dense width.
  const Transformer qwen{.ffn_hidden_size = 1,
                         .head_dim = 256,
                         .qk_norm = true,
                         .rotary_fraction = 0.25,
                         .attention_output_gate = true};
  const FamilyRow qwen35{.model_type = "qwen3_5_text",
                         .model = qwen,
                         .pattern = "layer_types",
                         .experts = kQwenExperts,
                         .state = kDeltaKeys,
                         .further_tokens = "mtp_num_hidden_layers",
                         .must_be_off = kQwen35Off,
                         .no_shape = kQwen35NoShape};
  FamilyRow qwen35_moe = qwen35, qwen3_next = qwen35;
  qwen35_moe.model_type = "qwen3_5_moe_text";
  qwen3_next.model_type = "qwen3_next";
  return {qwen35, qwen35_moe, qwen3_next};
}

std::vector<FamilyRow> window_rows() {
  const Transformer each_head{.qk_norm = true};
  const Transformer all_heads{.qk_norm = true, .qk_norm_spans_heads = true};
  return {
      {.model_type = "minimax_m2",
       .model = all_heads,
       .experts = {.n_experts = "num_local_experts",
                   .per_token = "num_experts_per_tok",
                   .width = "intermediate_size"},
       .further_tokens = "num_mtp_modules",
       .must_be_off = kMiniMaxOff,
       .no_shape = kMiniMaxNoShape},
      {.model_type = "mimo_v2_flash",
       .model = {},
       .pattern = "hybrid_layer_pattern",
       .experts = {.n_experts = "n_routed_experts",
                   .per_token = "num_experts_per_tok",
                   .width = "moe_intermediate_size",
                   .n_shared = "n_shared_experts",
                   .layers = "moe_layer_freq"},
       .sliding = {"swa_num_attention_heads",
                   "swa_num_key_value_heads",
                   "swa_head_dim",
                   "swa_v_head_dim",
                   "add_swa_attention_sink_bias",
                   {}},
       .full = {.v_head_dim = "v_head_dim", .sinks = "add_full_attention_sink_bias"},
       .no_shape = kMiMoNoShape},
      {.model_type = "step3p7",
       .model = each_head,
       .pattern = "layer_types",
       .experts = {.n_experts = "num_experts",
                   .per_token = "num_experts_per_tok",
                   .width = "moe_intermediate_size",
                   .n_shared = "n_shared_experts",
                   .shared_width = "share_expert_dim",
                   .first_dense = "first_k_dense_replace"},
       .further_tokens = "num_nextn_predict_layers",
       .no_shape = kStepNoShape},
  };
}

std::vector<FamilyRow> mixed_rows() {
  return {
      {.model_type = "gemma4_text",
       .model =
           {.norms_per_layer = 4, .qk_norm = true, .activation = Activation::gelu, .tied_embeddings = true},
       .pattern = "layer_types",
       .experts = {.n_experts = "num_experts",
                   .per_token = "top_k_experts",
                   .width = "moe_intermediate_size",
                   .dense_beside = true,
                   .switch_key = "enable_moe_block"},
       .full = {.n_kv_heads = "num_global_key_value_heads",
                .head_dim = "global_head_dim",
                .values_are_keys = "attention_k_eq_v"},
       .activation = "hidden_activation",
       .must_be_off = kGemma4Off,
       .no_shape = kGemma4NoShape},
      {.model_type = "nemotron_h",
       .model = {.activation = Activation::squared_relu, .position = PositionEncoding::none},
       .pattern = "hybrid_override_pattern",
       .experts = {.n_experts = "n_routed_experts",
                   .per_token = "num_experts_per_tok",
                   .width = "moe_intermediate_size",
                   .n_shared = "n_shared_experts",
                   .shared_width = "moe_shared_expert_intermediate_size",
                   .latent_size = "moe_latent_size"},
       .state = {"mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel",
                 "use_conv_bias", "chunk_size"},
       .activation = "mlp_hidden_act",
       .further_tokens = "num_nextn_predict_layers",
       .further_pattern = "mtp_hybrid_override_pattern",
       .must_be_off = kNemotronHOff,
       .no_shape = kNemotronHNoShape},
  };
}

std::vector<FamilyRow> make_rows() {
  std::vector<FamilyRow> rows = window_rows();
  for (const auto& more : {mixed_rows(), linear_attention_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace

std::span<const FamilyRow> huggingface_rows() {
  static const std::vector<FamilyRow> rows = make_rows();
  return rows;
}

Status read_row(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  const std::string name = std::exchange(model, row.model).name;
  model.name = name;
  const bool gated = row.model.activation != Activation::squared_relu;
  STEPCAST_TRY(require_kv_heads(keys));
  const bool says_tied = keys.has("tie_word_embeddings");
  STEPCAST_TRY(read_llama_like(keys, model));
  model.gated_ffn = gated;
  model.position = row.model.position == PositionEncoding::none ? PositionEncoding::none : model.position;
  if (row.activation != "hidden_act") {
    model.activation = row.model.activation;
    STEPCAST_TRY(read_activation(keys, row.activation, model.activation));
  }
  // A Transformer is tied unless it says otherwise; of these families those that say how an activation is called are.
  if (!says_tied) model.tied_embeddings = row.activation == "hidden_activation";
  bool bias = false, qk_norm = model.qk_norm;
  STEPCAST_TRY(keys.optional("attention_bias", bias));
  model.qkv_bias = model.attention_output_bias = bias;
  STEPCAST_TRY(keys.optional("mlp_bias", model.ffn_bias));
  STEPCAST_TRY(keys.optional("hidden_dropout", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("use_qk_norm", qk_norm));
  model.qk_norm = qk_norm;
  STEPCAST_TRY(keys.optional("attn_output_gate", model.attention_output_gate));
  double logits = 0;
  STEPCAST_TRY(keys.optional("final_logit_softcapping", logits));
  model.logit_softcap = logits > 0;
  STEPCAST_TRY(optional_size(keys, row.further_tokens, model.n_multi_token_prediction_layers));
  std::int64_t step = 1;
  STEPCAST_TRY(keys.optional("decoder_sparse_step", step));
  if (step != 1) return keys.error("decoder_sparse_step").found(fmt::format("{}", step)).expected("1");
  STEPCAST_TRY(refuse_what_is_on(row, keys));
  STEPCAST_TRY(read_expert_sizes(keys, row.experts, model));
  STEPCAST_TRY(read_state(keys, row.state, model));
  if (!row.pattern.empty()) STEPCAST_TRY(read_pattern(row, keys, model));
  STEPCAST_TRY(read_further_pattern(row, keys, model));
  // MiniMax: a list of 1 for every layer with attention; 0 was linear attention of an earlier model.
  if (const JsonValue* types = keys.take("attn_type_list"); types != nullptr && !types->is_null()) {
    const auto numbers = types->numbers();
    if (!numbers || std::any_of(numbers->begin(), numbers->end(), [](double type) { return type != 1; })) {
      return keys.error("attn_type_list", "linear attention of MiniMax-01 is not modelled")
          .expected("1 everywhere");
    }
  }
  keys.ignore(row.no_shape);
  return Ok{};
}

// Layers that a search chose one by one (Nemotron Super): attention or none, and a width of their own.
Status read_nemotron_nas(ObjectReader& keys, Transformer& model) {
  model.ffn_hidden_size = 1;
  STEPCAST_TRY(read_llama(keys, model));
  const JsonValue* blocks = keys.take("block_configs");
  const auto wrong = [&](std::string problem) { return keys.error("block_configs", std::move(problem)); };
  if (blocks == nullptr || !blocks->is_array()) {
    return keys.error("", "`block_configs` is missing").expected("a list of what each layer is");
  }
  if (static_cast<std::int64_t>(blocks->items().size()) != model.n_layers) {
    return wrong("")
        .found(fmt::format("{} layers", blocks->items().size()))
        .expected("num_hidden_layers of them");
  }
  for (const JsonValue& block : blocks->items()) {
    LayerKind kind;
    STEPCAST_TRY(read_searched_block(keys, block, model, kind));
    append_layer(model, kind);
    if (model.layer_kinds.size() > 255) return wrong("more than 255 kinds of layers");
    if (kind.n_kv_heads > 0) model.n_kv_heads = kind.n_kv_heads;
    model.ffn_hidden_size = std::max(model.ffn_hidden_size, kind.ffn_hidden_size);
  }
  return Ok{};
}

}  // namespace stepcast::detail

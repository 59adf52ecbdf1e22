// Reads layers with a state (Mamba, linear attention): their sizes, and models that consist of such layers only.
#include <string_view>

#include "stepcast/formats/detail/huggingface/huggingface_readers.h"
#include "stepcast/formats/detail/huggingface/huggingface_rows.h"
#include "stepcast/formats/detail/hybrid_layers.h"

namespace stepcast::detail {
namespace {

// Sizes of mixers with heads that follow from the model's size: channels for Mamba-1, attention heads for
// decayed linear attention.
Status read_channels(ObjectReader& keys, const StateKeys& names, const Transformer& model,
                     StateMixer& state) {
  constexpr std::int64_t kWidest = 100'000;
  if (model.hidden_size > kWidest || model.n_heads < 1)
    return keys.error("hidden_size").expected("at most 100000, and one head or more");
  state.head_dim = state.n_key_heads = state.key_head_dim = 1;
  state.n_heads = model.hidden_size;
  if (names.mixer == Mixer::decayed_linear) {
    state.n_heads = state.n_key_heads = model.n_heads;
    state.head_dim = state.key_head_dim = model.qk_head_dim();
    state.head_norms = model.qk_norm;
  } else if (names.mixer == Mixer::mamba1) {
    double expand = 2;  // inner width as a multiple of the model's width, unless the inner width is given
    STEPCAST_TRY(keys.optional(keys.has("mamba_expand") ? "mamba_expand" : "expand", expand));
    if (!(expand > 0 && expand < 100)) return keys.error("expand").expected("a number from 0 to 100");
    state.n_heads = static_cast<std::int64_t>(expand * static_cast<double>(model.hidden_size));
    STEPCAST_TRY(optional_size(keys, names.n_heads, state.n_heads));
    STEPCAST_TRY(keys.required(names.key_head_dim, state.key_head_dim));
    // dt_rank "auto" is the hidden size divided by 16, rounded up.
    state.rank = (model.hidden_size + 15) / 16;
    const std::string_view rank = keys.has("mamba_dt_rank") ? "mamba_dt_rank" : "time_step_rank";
    if (const JsonValue* said = keys.take(rank); said != nullptr && !said->is_text())
      STEPCAST_TRY(keys.optional(rank, state.rank));
  }
  return Ok{};
}

}  // namespace

Status read_state(ObjectReader& keys, const StateKeys& names, Transformer& model) {
  StateMixer state;
  state.conv_bias = !names.conv_bias.empty();
  // The mixers differ in their keys: derived sizes, Kimi's sizes from attention, or four explicit keys.
  if (names.n_heads.empty() || names.mixer == Mixer::mamba1) {
    if (names.mixer == Mixer::gated_delta) return Ok{};
    STEPCAST_TRY(read_channels(keys, names, model, state));
  } else if (names.mixer == Mixer::channel_delta && !keys.has(names.n_heads)) {
    state.n_heads = state.n_key_heads = model.n_heads;  // Ling 3: as in attention
    STEPCAST_TRY(keys.required("head_dim", state.head_dim));
    state.key_head_dim = state.head_dim;
    STEPCAST_TRY(keys.optional("short_conv_kernel_size", state.conv_kernel));
  } else {
    STEPCAST_TRY(keys.required(names.n_heads, state.n_heads));
    STEPCAST_TRY(keys.required(names.head_dim, state.head_dim));
    STEPCAST_TRY(keys.required(names.n_key_heads, state.n_key_heads));
    STEPCAST_TRY(keys.required(names.key_head_dim, state.key_head_dim));
  }
  STEPCAST_TRY(optional_size(keys, names.conv_kernel, state.conv_kernel));
  STEPCAST_TRY(optional_size(keys, names.chunk_tokens, state.chunk_tokens));
  if (!names.conv_bias.empty()) STEPCAST_TRY(keys.optional(names.conv_bias, state.conv_bias));
  if (names.low_rank) state.rank = state.head_dim;
  state.has_norm = names.has_norm;
  if (!names.norm.empty()) {
    state.has_norm = false;
    STEPCAST_TRY(keys.optional(names.norm, state.has_norm));
  }
  model.state_mixer = state;
  return Ok{};
}

// Models without attention: each layer is one state mixer without FFN.
Status read_state_alone(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  model.norm = row.norm;
  model.norm_bias = row.norm_bias;
  model.tied_embeddings = row.tied_otherwise;
  model.ffn_hidden_size = model.n_heads = 1;
  STEPCAST_TRY(keys.required("num_hidden_layers", model.n_layers));
  STEPCAST_TRY(keys.required("hidden_size", model.hidden_size));
  STEPCAST_TRY(keys.required("vocab_size", model.vocab_size));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  STEPCAST_TRY(read_state(keys, row.state, model));
  keys.ignore(huggingface_keys("mamba"));
  for (std::int64_t layer = 0; layer < model.n_layers && layer < 10'000; ++layer)
    append_layer(model, {.mixer = row.state.mixer, .feed_forward = LayerKind::FeedForward::none});
  return Ok{};
}

}  // namespace stepcast::detail

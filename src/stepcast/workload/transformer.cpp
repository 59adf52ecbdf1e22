#include "stepcast/workload/transformer.h"

#include <algorithm>
#include <utility>

#include "stepcast/base/names.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/modules/layer_module.h"
#include "stepcast/workload/modules/parameters.h"
#include "stepcast/workload/network.h"

// Parameter counts, and models of single kinds of layers.

namespace stepcast {
namespace {

// Parameters of the mixes of one part of a layer: weights of the reading and writing mixes, their biases, and
// three scales.
std::int64_t stream_parameters(const Transformer& model) {
  const std::int64_t streams = model.residual_streams;
  return streams > 1 ? (2 + streams) * streams * (streams * model.hidden_size + 1) + 3 : 0;
}

}  // namespace

std::string_view to_string(Architecture architecture) {
  return name_of<Architecture::encoder>(architecture, {"decoder", "encoder"}, "?");
}

std::string_view to_string(Mixer mixer) {
  return name_of<Mixer::none>(mixer,
                              {"attention", "gated_delta", "channel_delta", "decayed_linear", "mamba2",
                               "mamba1", "short_convolution", "none"},
                              "?");
}

std::string_view to_string(Activation activation) {
  return name_of<Activation::silu>(activation, {"gelu", "relu", "squared_relu", "silu"}, "?");
}

std::string_view to_string(PositionEncoding encoding) {
  return name_of<PositionEncoding::relative>(encoding, {"learned", "rotary", "alibi", "none", "relative"},
                                             "?");
}

std::int64_t Transformer::qk_head_dim() const { return attention_of(*this).query_head_dim(*this); }

std::int64_t Transformer::value_head_dim() const { return attention_of(*this).value_head_dim(*this); }

std::int64_t Transformer::gates_of_head() const {
  if (!attention_output_gate) return 0;
  return gate_per_head ? 1 : value_head_dim();
}

bool Transformer::has_experts(std::int64_t layer) const {
  if (!layer_kinds.empty()) return layer_kinds[kind(layer)].feed_forward == LayerKind::FeedForward::experts;
  if (!moe || layer < moe->first_dense_layers) return false;
  const std::int64_t every = moe->moe_every_n_layers;
  return every == 1 || (layer - moe->first_dense_layers + 1) % every == 0;
}

std::int64_t Transformer::window_tokens(std::int64_t layer) const {
  if (!layer_kinds.empty()) return layer_kinds[kind(layer)].window_tokens;
  const std::int64_t every = global_attention_every_n_layers;
  return every > 0 && (layer + 1) % every == 0 ? 0 : sliding_window_tokens;
}

std::int64_t Transformer::n_moe_layers() const {
  if (!layer_kinds.empty()) {
    std::int64_t n = 0;
    for (std::int64_t layer = 0; layer < n_layers; ++layer) n += has_experts(layer) ? 1 : 0;
    return n;
  }
  return moe ? (n_layers - moe->first_dense_layers) / moe->moe_every_n_layers : 0;
}

std::int64_t ParameterCount::total() const {
  return word_embedding + position_embedding + attention + ffn + router + routed_experts + shared_experts +
         tower + norms + head;
}

ParameterCount& ParameterCount::operator+=(const ParameterCount& other) {
  word_embedding += other.word_embedding;
  position_embedding += other.position_embedding;
  attention += other.attention;
  ffn += other.ffn;
  router += other.router;
  routed_experts += other.routed_experts;
  shared_experts += other.shared_experts;
  tower += other.tower;
  norms += other.norms;
  head += other.head;
  return *this;
}

ParameterCount layer_parameter_count(const Transformer& model, std::int64_t layer) {
  if (model.network) return {.ffn = model.network->kinds[model.kind(layer)].parameters()};
  if (!model.layer_kinds.empty()) return layer_parameter_count(layer_model(model, model.kind(layer)), 0);
  ParameterCount n;
  n.norms = model.norms_per_layer * norm_parameters(model, model.hidden_size) + 2 * stream_parameters(model);
  for (const LayerPart& part : layer_parts())
    if (part.applies(model, model.has_experts(layer))) part.module(model).add_parameters(model, n);
  if (!model.has_ffn) return n;
  // Projections into and out of the per-layer vector, and the norm after it.
  n.ffn += 2 * model.hidden_size * model.vector_of_layer;
  if (model.vector_of_layer > 0) n.norms += norm_parameters(model, model.hidden_size);
  return n;
}

ParameterCount embedding_parameter_count(const Transformer& model) {
  ParameterCount n;
  if (model.network) return n;
  n.word_embedding = model.vocab_size * model.hidden_size;
  // With relative positions, the layers themselves encode the segments.
  const bool relative = model.position == PositionEncoding::relative;
  n.position_embedding = relative ? 0 : model.n_token_types * model.hidden_size;
  if (model.position == PositionEncoding::learned)
    n.position_embedding += model.max_position * model.hidden_size;
  if (model.embedding_norm) n.norms = norm_parameters(model, model.hidden_size);
  if (const std::int64_t width = model.vector_of_layer; width > 0)
    n.position_embedding += (model.vocab_of_layers + model.hidden_size) * model.n_layers * width + width;
  if (model.tower) n.tower = model.tower->parameters();
  return n;
}

ParameterCount head_parameter_count(const Transformer& model) {
  const std::int64_t dense = model.hidden_size * model.hidden_size + model.hidden_size;
  ParameterCount n;
  if (model.network) return n;
  if (model.final_norm) n.norms = norm_parameters(model, model.hidden_size);
  if (const std::int64_t streams = model.residual_streams; streams > 1)
    n.norms += streams * (streams * model.hidden_size + 1) + 1;  // the sum of the streams
  if (!model.tied_embeddings) n.head += model.vocab_size * model.hidden_size;
  if (model.head_bias) n.head += model.vocab_size;
  if (model.pooler) n.head += dense;
  if (model.mlm_head) {
    n.head += model.ffn_bias ? dense : dense - model.hidden_size;
    n.head += norm_parameters(model, model.hidden_size);
  }
  return n;
}

ParameterCount parameter_count(const Transformer& model) {
  ParameterCount n = embedding_parameter_count(model);
  n += head_parameter_count(model);
  if (model.network) {
    for (std::int64_t layer = 0; layer < model.n_layers; ++layer) n += layer_parameter_count(model, layer);
    return n;
  }
  const std::int64_t n_moe = model.n_moe_layers();
  const auto add_layers = [&n](const ParameterCount& layer, std::int64_t times) {
    n.attention += times * layer.attention;
    n.ffn += times * layer.ffn;
    n.router += times * layer.router;
    n.routed_experts += times * layer.routed_experts;
    n.shared_experts += times * layer.shared_experts;
    n.norms += times * layer.norms;
  };
  for (std::size_t k = 0; k < model.layer_kinds.size(); ++k) {
    const auto times = std::ranges::count(model.kind_of_layer, k);
    add_layers(layer_parameter_count(layer_model(model, k), 0), times);
  }
  if (!model.layer_kinds.empty()) return n;
  Transformer dense = model;
  dense.moe.reset();
  add_layers(layer_parameter_count(dense, 0), model.n_layers - n_moe);
  if (n_moe > 0) {
    const std::int64_t first_moe = model.moe->first_dense_layers + model.moe->moe_every_n_layers - 1;
    add_layers(layer_parameter_count(model, first_moe), n_moe);
  }
  return n;
}

// The norms of a layer with only one part are halved.
Transformer layer_model(const Transformer& model, std::size_t kind) {
  const LayerKind& own = model.layer_kinds[kind];
  Transformer one = model;
  one.layer_kinds.clear();
  one.kind_of_layer.clear();
  one.mixer = own.mixer;
  one.has_ffn = own.feed_forward != LayerKind::FeedForward::none;
  if (own.mixer == Mixer::none || !one.has_ffn) one.norms_per_layer = (model.norms_per_layer + 1) / 2;
  for (const auto& [size, of_kind] : {std::pair{&one.n_heads, own.n_heads},
                                      {&one.n_kv_heads, own.n_kv_heads},
                                      {&one.head_dim, own.head_dim},
                                      {&one.v_head_dim, own.v_head_dim},
                                      {&one.ffn_hidden_size, own.ffn_hidden_size}}) {
    if (of_kind > 0) *size = of_kind;
  }
  one.sliding_window_tokens = own.window_tokens;
  one.global_attention_every_n_layers = 0;
  one.attention_sinks = own.attention_sinks;
  one.values_are_keys = own.values_are_keys;
  one.compressed_tokens = own.compressed_tokens;
  one.shares_chosen_keys = own.shares_chosen_keys;
  one.shares_keys_values = own.shares_keys_values;
  one.attends_beside = own.attends_beside;
  if (!attention_of(model).traits().indexes_every_layer && !own.chooses_keys) one.sparse_indexer.reset();
  if (own.cross_tokens > 0) {
    one.cross_tokens = own.cross_tokens;
    one.position = PositionEncoding::none;
    one.qk_norm = true;
  }
  if (own.feed_forward != LayerKind::FeedForward::experts) {
    one.moe.reset();
  } else if (one.moe) {
    one.moe->first_dense_layers = 0;
    one.moe->moe_every_n_layers = 1;
  }
  return one;
}

std::vector<std::int64_t> layers_of_further_prediction(const Transformer& model) {
  if (model.kinds_of_further_layer.empty()) return {model.n_layers - 1};
  std::vector<std::int64_t> layers;
  for (const std::uint8_t kind : model.kinds_of_further_layer) {
    const auto last = std::find(model.kind_of_layer.rbegin(), model.kind_of_layer.rend(), kind);
    layers.push_back(model.kind_of_layer.rend() - last - 1);
  }
  return layers;
}

std::int64_t active_parameter_count(const Transformer& model) {
  const ParameterCount n = parameter_count(model);
  if (!model.moe) return n.total();
  return n.total() -
         n.routed_experts / model.moe->n_experts * (model.moe->n_experts - model.moe->experts_per_token);
}

std::int64_t multi_token_prediction_parameters(const Transformer& model) {
  // Three norms: of hidden state, embedding and output.
  std::int64_t layer = 0;
  for (const std::int64_t like : layers_of_further_prediction(model))
    layer += layer_parameter_count(model, like).total();
  const std::int64_t projection = 2 * model.hidden_size * model.hidden_size;
  return model.n_multi_token_prediction_layers *
         (layer + projection + 3 * norm_parameters(model, model.hidden_size));
}

}  // namespace stepcast

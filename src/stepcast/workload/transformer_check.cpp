// Checks of a Transformer: ranges of sizes, divisibility of heads, and valid combinations of parts.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/workload/detail/divisors.h"
#include "stepcast/workload/modules/attention_module.h"
#include "stepcast/workload/modules/experts.h"
#include "stepcast/workload/modules/indexer.h"
#include "stepcast/workload/modules/parameters.h"
#include "stepcast/workload/modules/state_mixer.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {
namespace {

Status check_model_sizes(const Transformer& model) {
  // Far above existing models. Together with kMostParameters, the limits keep all computed sizes within 64
  // bits. Layers are listed one by one, so their number has a lower limit.
  constexpr std::int64_t kLayers = 10'000, kWidth = 100'000'000, kCount = 1'000'000'000;
  return check_sizes(
      model, "",
      {
          {"n_layers", model.n_layers, 1, kLayers},
          {"hidden_size", model.hidden_size, 1, kWidth},
          {"ffn_hidden_size", model.ffn_hidden_size, 1, kWidth},
          {"n_heads", model.n_heads, 1, kWidth},
          {"n_kv_heads", model.n_kv_heads, 0, kWidth},
          {"head_dim", model.head_dim, 0, kWidth},
          {"v_head_dim", model.v_head_dim, 0, kWidth},
          {"vocab_size", model.vocab_size, 1, kCount},
          {"max_position", model.max_position,
           model.position == PositionEncoding::learned ? 1 + model.unused_positions : 0, kCount},
          {"unused_positions", model.unused_positions, 0, 16},
          {"norms_per_layer", model.norms_per_layer, 0, 16},
          {"n_token_types", model.n_token_types, 0, kWidth},
          {"sliding_window_tokens", model.sliding_window_tokens, 0, kCount},
          {"global_attention_every_n_layers", model.global_attention_every_n_layers, 0, kLayers},
          {"n_multi_token_prediction_layers", model.n_multi_token_prediction_layers, 0, kLayers},
      });
}

Status check_streams(const Transformer& model) {
  constexpr std::int64_t kMostStreams = 1000;
  return check_sizes(model, "", {{"residual_streams", model.residual_streams, 1, kMostStreams}});
}

// Heads must divide the hidden size, and key-value heads the heads.
Status check_heads(const Transformer& model) {
  if (model.head_dim == 0 && !attention_of(model).traits().sets_head_dim &&
      model.hidden_size % model.n_heads != 0) {
    return Error::at(
               model.name, "n_heads",
               fmt::format("hidden_size {} is not divisible by n_heads {}", model.hidden_size, model.n_heads))
        .advice(fmt::format("nearest that work: n_heads {}; or give head_dim",
                            detail::nearest_divisors(model.hidden_size, model.n_heads)));
  }
  if (model.n_heads % model.kv_heads() != 0) {
    return Error::at(
               model.name, "n_kv_heads",
               fmt::format("n_heads {} is not divisible by n_kv_heads {}", model.n_heads, model.n_kv_heads))
        .advice(fmt::format("nearest that work: n_kv_heads {}",
                            detail::nearest_divisors(model.n_heads, model.n_kv_heads)));
  }
  return Ok{};
}

// Shares and probabilities from 0 to 1.
Status check_fractions(const Transformer& model) {
  const struct {
    std::string_view name;
    double value;
  } fractions[] = {{"rotary_fraction", model.rotary_fraction},
                   {"hidden_dropout", model.hidden_dropout},
                   {"attention_dropout", model.attention_dropout}};
  for (const auto& fraction : fractions) {
    if (fraction.value >= 0 && fraction.value <= 1) continue;
    return Error::at(model.name, std::string{fraction.name})
        .found(fmt::format("{}", fraction.value))
        .expected("a number from 0 to 1");
  }
  return Ok{};
}

// Kinds of layers: consistent lengths, known kinds, and the sizes that each kind needs.
Status check_kinds(const Transformer& model) {
  const auto wrong = [&](std::string problem) {
    return Error::at(model.name, "layer_kinds", std::move(problem));
  };
  if (model.network || (model.layer_kinds.empty() && model.kind_of_layer.empty())) return Ok{};
  if (static_cast<std::int64_t>(model.kind_of_layer.size()) != model.n_layers) {
    return wrong(
        fmt::format("{} layers have a kind, n_layers is {}", model.kind_of_layer.size(), model.n_layers));
  }
  for (const std::uint8_t kind : model.kind_of_layer)
    if (kind >= model.layer_kinds.size()) return wrong(fmt::format("a layer has the unknown kind {}", kind));
  for (const std::uint8_t kind : model.kinds_of_further_layer) {
    if (std::ranges::count(model.kind_of_layer, kind) == 0)
      return wrong("an extra prediction layer is of a kind that no layer has");
  }
  for (std::size_t k = 0; k < model.layer_kinds.size(); ++k) {
    const LayerKind& kind = model.layer_kinds[k];
    if (is_recurrent(kind.mixer) && !model.state_mixer)
      return wrong("a recurrent layer without sizes of its state");
    const bool experts = kind.feed_forward == LayerKind::FeedForward::experts;
    if (experts && !model.moe) return wrong("a layer of experts in a model without experts");
    constexpr std::int64_t kMostCrossTokens = 1'000'000;
    if (kind.cross_tokens < 0 || kind.cross_tokens > kMostCrossTokens)
      return wrong("cross-attention to more than 1000000 vectors");
    if (kind.mixer == Mixer::none && kind.feed_forward == LayerKind::FeedForward::none)
      return wrong("a layer without any part");
    const Transformer one = layer_model(model, k);
    STEPCAST_TRY(check_model_sizes(one));
    STEPCAST_TRY(check_heads(one));
  }
  return Ok{};
}

// The number of parameters in floating point, before any integer could overflow.
double approximate_parameters(const Transformer& model) {
  const double hidden = static_cast<double>(model.hidden_size), layers = static_cast<double>(model.n_layers);
  const double heads = static_cast<double>(model.n_heads);
  double layer = 3 * hidden * static_cast<double>(model.ffn_hidden_size);
  if (model.moe) {
    layer +=
        3 * std::max(hidden, static_cast<double>(model.moe->latent_size)) *
        (static_cast<double>(model.moe->n_experts) * static_cast<double>(model.moe->expert_ffn_hidden_size) +
         static_cast<double>(model.moe->n_shared_experts) *
             static_cast<double>(model.moe->shared_ffn_hidden_size));
  }
  const auto [head_dim, ranks] = attention_of(model).parameter_bounds(model);
  if (const auto& state = model.state_mixer)
    layer += 6 * hidden * static_cast<double>(state->values() + state->keys());
  const double width = (hidden + ranks) * static_cast<double>(model.residual_streams);
  if (const auto& index = model.sparse_indexer)
    layer += (ranks + hidden) * static_cast<double>(index->n_heads * index->head_dim + index->head_dim);
  for (const LayerKind& kind : model.layer_kinds) {
    layer += 3 * hidden * static_cast<double>(kind.ffn_hidden_size);
    layer += 4 * hidden * static_cast<double>(std::max(kind.n_heads, model.n_heads)) *
             static_cast<double>(std::max({kind.head_dim, kind.v_head_dim, model.head_dim}));
  }
  layer += 4 * width * (heads * head_dim + width);
  const double rows = static_cast<double>(model.vocab_size) * 2 + static_cast<double>(model.max_position);
  return (layers + static_cast<double>(model.n_multi_token_prediction_layers)) * layer + rows * hidden;
}

}  // namespace

Status check(const Transformer& model) {
  STEPCAST_TRY(check_model_sizes(model));
  STEPCAST_TRY(experts().check(model));
  STEPCAST_TRY(check_streams(model));
  STEPCAST_TRY(attention_of(model).check(model));
  STEPCAST_TRY(Indexer::check(model));
  STEPCAST_TRY(state_mixer().check(model));
  STEPCAST_TRY(check_heads(model));
  STEPCAST_TRY(check_fractions(model));
  STEPCAST_TRY(check_kinds(model));
  constexpr double kMostParameters = 1e16;
  if (const double n = approximate_parameters(model); n > kMostParameters) {
    return Error::at(model.name, "", fmt::format("about {:.2g} parameters", n))
        .expected("at most 1e16")
        .advice("check n_layers, hidden_size, ffn_hidden_size and vocab_size");
  }
  return Ok{};
}

}  // namespace stepcast

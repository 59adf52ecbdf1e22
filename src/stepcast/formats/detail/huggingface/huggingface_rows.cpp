// Reads a model of the family table. read_row() reads sizes and options in a fixed order; read_pattern() then
// builds the layers, which is only needed if they differ from each other.
#include "stepcast/formats/detail/huggingface/huggingface_rows.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/scan.h"
#include "stepcast/base/words.h"
#include "stepcast/formats/detail/huggingface/huggingface_readers.h"
#include "stepcast/formats/detail/hybrid_layers.h"
#include "stepcast/workload/modules/attention_module.h"

namespace stepcast::detail {

// A list may be an array, or a text with one letter per layer. Up to `further` extra entries (multi-token
// prediction) are dropped.
Result<std::vector<std::string>> read_words(ObjectReader& keys, std::string_view key, std::int64_t n_layers,
                                            std::int64_t further) {
  const JsonValue* list = keys.take(key);
  if (list == nullptr || list->is_null()) {
    return keys.error("", fmt::format("`{}` is missing", key)).expected("the kind of each layer");
  }
  std::vector<std::string> words;
  if (list->is_text()) {
    for (const char letter : list->text()) words.emplace_back(1, letter);
  } else if (list->is_array()) {
    for (const JsonValue& item : list->items())
      words.push_back(item.is_text() ? item.text() : describe_value(item));
  }
  const auto said = static_cast<std::int64_t>(words.size());
  if (said > n_layers && said - n_layers <= further) words.resize(static_cast<std::size_t>(n_layers));
  if (static_cast<std::int64_t>(words.size()) != n_layers) {
    return keys.error(key)
        .found(fmt::format("{} layers", words.size()))
        .expected(fmt::format("num_hidden_layers entries, {}", n_layers));
  }
  return words;
}

// True for layers with layer % period == offset. Empty if the config has no period.
Result<std::vector<bool>> layers_of_period(ObjectReader& keys, std::string_view period_key,
                                           std::string_view offset_key, std::int64_t n_layers) {
  std::vector<bool> is;
  if (!keys.has(period_key)) return is;
  std::int64_t period = 1, offset = 0;
  STEPCAST_TRY(keys.optional(period_key, period));
  STEPCAST_TRY(keys.optional(offset_key, offset));
  if (period < 1 || offset >= period || n_layers > 1'000'000)
    return keys.wrong(period_key, period, "more than the offset");
  for (std::int64_t layer = 0; layer < n_layers; ++layer) is.push_back(layer % period == offset);
  return is;
}

Status optional_size(ObjectReader& keys, std::string_view key, std::int64_t& out) {
  return key.empty() ? Status{Ok{}} : keys.optional(key, out);
}

namespace {

using FeedForward = LayerKind::FeedForward;

// Words of a layer pattern, for layers with a mixer and an FFN. Single letters describe layers of one part
// instead (hybrid_layers.h).
struct LayerWord {
  std::string_view word;
  Mixer mixer;
  bool sliding = false, chooses_keys = false;
};
constexpr LayerWord kLayerWords[] = {{"full_attention", Mixer::attention},
                                     {"sliding_attention", Mixer::attention, true},
                                     {"attention", Mixer::attention},
                                     {"indexed_attention", Mixer::attention},
                                     {"minimax_m3_sparse", Mixer::attention, false, true},
                                     {"mamba", Mixer::mamba2},
                                     {"linear_attention", Mixer::gated_delta},
                                     {"conv", Mixer::short_convolution},
                                     {"0", Mixer::attention},
                                     {"1", Mixer::attention, true}};

// The words of layers for configs with only an interval of full-attention layers (Qwen3-Next).
Result<std::vector<std::string>> words_by_interval(ObjectReader& keys, const FamilyRow& row,
                                                   std::int64_t n_layers) {
  std::int64_t every = 0;
  STEPCAST_TRY(keys.required(row.interval, every));
  constexpr std::int64_t kMostLayers = 1'000'000;
  if (every < 1 || n_layers > kMostLayers) {
    return keys.wrong(row.interval, every, "1 or more");
  }
  const char* other = row.has_state() ? "linear_attention" : "sliding_attention";
  std::vector<std::string> words;
  for (std::int64_t layer = 1; layer <= n_layers; ++layer)
    words.emplace_back(layer % every == 0 ? "full_attention" : other);
  return words;
}

// Sizes of attention in layers of one kind, under the keys of the family.
Status read_attention_keys(ObjectReader& keys, const AttentionKeys& names, LayerKind& kind) {
  STEPCAST_TRY(optional_size(keys, names.n_heads, kind.n_heads));
  STEPCAST_TRY(optional_size(keys, names.n_kv_heads, kind.n_kv_heads));
  STEPCAST_TRY(optional_size(keys, names.head_dim, kind.head_dim));
  STEPCAST_TRY(optional_size(keys, names.v_head_dim, kind.v_head_dim));
  if (!names.sinks.empty()) STEPCAST_TRY(keys.optional(names.sinks, kind.attention_sinks));
  return names.values_are_keys.empty() ? Status{Ok{}}
                                       : keys.optional(names.values_are_keys, kind.values_are_keys);
}

// The words of layers for configs that list their attention layers; all others have a state.
Result<std::vector<std::string>> words_by_numbers(ObjectReader& keys, std::string_view key,
                                                  std::int64_t n_layers) {
  constexpr std::int64_t kMostLayers = 1'000'000;
  std::vector<std::string> words(static_cast<std::size_t>(std::min(n_layers, kMostLayers)), "mamba");
  const JsonValue* list = keys.take(key);
  if (list == nullptr || list->is_null()) return words;
  const auto numbers = list->numbers();
  if (!numbers) return keys.error(key).found(describe_value(*list)).expected("a list of numbers");
  for (const double layer : *numbers)
    if (layer >= 0 && layer < static_cast<double>(words.size()))
      words[static_cast<std::size_t>(layer)] = "attention";
  return words;
}

// A word or letter for each layer. Configs without a pattern have equal layers with full attention.
Result<std::vector<std::string>> read_layer_words(const FamilyRow& row, ObjectReader& keys,
                                                  Transformer& model) {
  const std::int64_t further = model.n_multi_token_prediction_layers;
  STEPCAST_ASSIGN(const std::vector<bool> attends,
                  layers_of_period(keys, "attn_layer_period", "attn_layer_offset", model.n_layers));
  if (!attends.empty()) {
    std::vector<std::string> words;
    for (const bool one : attends) words.emplace_back(one ? "attention" : "mamba");
    return words;
  }
  // transformers 5 writes `layer_types` for every family; the old key of the family is then missing.
  const std::string_view pattern =
      !row.pattern.empty() && !keys.has(row.pattern) && keys.has("layer_types") ? "layer_types" : row.pattern;
  if (pattern != "layer_types" && keys.has(pattern)) keys.ignore("layer_types");  // a repetition
  if (pattern.empty() || keys.has(pattern)) {
    if (pattern.empty())
      return std::vector<std::string>(static_cast<std::size_t>(model.n_layers), "full_attention");
    STEPCAST_ASSIGN(std::vector<std::string> words, read_words(keys, pattern, model.n_layers, further));
    if (row.pattern == "attn_type_list")
      for (std::string& word : words) word = word == "0" ? "linear_attention" : "full_attention";
    return words;
  }
  if (!row.attending.empty()) {
    return words_by_numbers(keys, row.attending, model.n_layers);
  } else if (keys.has(row.interval)) {
    return words_by_interval(keys, row, model.n_layers);
  } else if (keys.has("sliding_window") || row.has_state()) {
    return read_words(keys, row.pattern, model.n_layers, further);
  }
  return std::vector<std::string>(static_cast<std::size_t>(model.n_layers), "full_attention");
}

// Step 3.5: heads of the layers with a window.
Status read_other_attention(ObjectReader& keys, LayerKind& sliding) {
  STEPCAST_ASSIGN(auto other, keys.section("attention_other_setting"));
  if (!other) return Ok{};
  STEPCAST_TRY(other->optional("num_attention_heads", sliding.n_heads));
  STEPCAST_TRY(other->optional("num_attention_groups", sliding.n_kv_heads));
  STEPCAST_TRY(other->optional("head_dim", sliding.head_dim));
  other->ignore("attention_type true_head_dim");
  return other->finish();
}

// Sizes of single layers. transformers 5 writes them as {"05": {"head_dim": 512}}.
Status read_layer_sizes(ObjectReader& keys, std::size_t layer, LayerKind& kind) {
  if (const JsonValue* heads = keys.take("num_attention_heads_per_layer"); heads != nullptr) {
    const auto numbers = heads->numbers();
    if (!numbers || layer >= numbers->size() || !((*numbers)[layer] >= 1 && (*numbers)[layer] < 1e6))
      return keys.error("num_attention_heads_per_layer").expected("a number for every layer");
    kind.n_heads = static_cast<std::int64_t>((*numbers)[layer]);
  }
  const JsonValue* all = keys.take("per_layer_config");
  const JsonValue* own = nullptr;
  if (all == nullptr || !all->is_object()) return Ok{};
  for (const JsonValue::Member& member : all->members())
    if (scan<std::size_t>(member.key) == layer) own = &member.value;
  if (own == nullptr) return Ok{};
  STEPCAST_ASSIGN(ObjectReader sizes,
                  ObjectReader::of(*own, "per_layer_config", keys.file(), NullMeans::absent));
  STEPCAST_TRY(sizes.optional("num_attention_heads", kind.n_heads));
  STEPCAST_TRY(sizes.optional("num_key_value_heads", kind.n_kv_heads));
  STEPCAST_TRY(sizes.optional("head_dim", kind.head_dim));
  STEPCAST_TRY(sizes.optional("intermediate_size", kind.ffn_hidden_size));
  return sizes.finish();
}

// Gemma 4 E2B and E4B: upper layers reuse keys and values of a lower one, some with a double-width FFN, and
// each layer adds embedding vectors of its own.
struct UpperLayers {
  std::size_t first = 0;
  bool double_width = false;
};
Result<UpperLayers> read_upper_layers(ObjectReader& keys, Transformer& model) {
  UpperLayers upper;
  std::int64_t n = 0;
  STEPCAST_TRY(keys.optional("num_kv_shared_layers", n));
  STEPCAST_TRY(keys.optional("use_double_wide_mlp", upper.double_width));
  upper.first = static_cast<std::size_t>(model.n_layers - std::min(n, model.n_layers));
  STEPCAST_TRY(keys.optional("hidden_size_per_layer_input", model.vector_of_layer));
  model.vocab_of_layers = model.vocab_size;
  STEPCAST_TRY(keys.optional("vocab_size_per_layer_input", model.vocab_of_layers));
  if (model.vector_of_layer == 0) model.vocab_of_layers = 0;
  if (upper.double_width && n > 0 && model.moe)
    return keys.error("use_double_wide_mlp", "wider upper layers together with experts are not modelled");
  constexpr std::int64_t kWidest = 10'000;
  if (model.vector_of_layer <= kWidest && model.vocab_of_layers <= 1000 * kWidest) return upper;
  return keys.error("hidden_size_per_layer_input").expected("at most 10000");
}

// Whether layers can be described without kinds: they differ only in experts, with dense layers first, or
// experts in the last of every `every` layers after them. Sets these numbers in `model.moe`.
bool are_regular(const std::vector<bool>& experts, std::int64_t every, Transformer& model) {
  const auto n_front = std::find(experts.begin(), experts.end(), true) - experts.begin();
  if (!model.moe) return true;
  model.moe->first_dense_layers = std::max<std::int64_t>(0, n_front - (every - 1));
  model.moe->moe_every_n_layers = every;
  for (std::size_t layer = 0; layer < experts.size(); ++layer)
    if (model.has_experts(static_cast<std::int64_t>(layer)) != experts[layer]) return false;
  return true;
}

// "kv_source_layers": from which layer each layer takes latent vectors. Sharing between layers is not supported.
Status refuse_shared_latents(ObjectReader& keys) {
  const JsonValue* list = keys.take("kv_source_layers");
  const auto sources = list == nullptr ? std::nullopt : list->numbers();
  for (std::size_t layer = 0; sources && layer < sources->size(); ++layer) {
    if ((*sources)[layer] != static_cast<double>(layer))
      return keys.error("kv_source_layers", "latent vectors that layers share are not modelled");
  }
  return Ok{};
}

// Builds the kinds of layers from experts, words, windows and sizes. Returns early if the layers are equal or
// regular, which needs no kinds.
Status read_pattern(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  STEPCAST_ASSIGN(const std::vector<bool> experts, read_expert_layers(keys, row.experts, model));
  STEPCAST_ASSIGN(const std::vector<std::string> words, read_layer_words(row, keys, model));
  std::vector<bool> without_indexer;
  if (attention_of(model).traits().indexes_every_layer && model.sparse_indexer) {
    STEPCAST_ASSIGN(without_indexer, layers_without_indexer(keys, model.n_layers));
  }
  std::int64_t every = 1;
  STEPCAST_TRY(keys.optional("decoder_sparse_step", every));
  // Equal or regular layers need no kinds.
  if (row.pattern.empty() && !keys.has("per_layer_config") && !keys.has("attn_layer_period") &&
      std::ranges::count(without_indexer, true) == 0 &&
      (are_regular(experts, every, model) || are_regular(experts, 1, model)))
    return Ok{};
  if (model.moe) {
    model.moe->first_dense_layers = 0;
    model.moe->moe_every_n_layers = 1;
  }
  // Templates of the two kinds of attention layers.
  LayerKind full, sliding;
  full.attention_sinks = sliding.attention_sinks = model.attention_sinks;
  STEPCAST_TRY(read_attention_keys(keys, row.full, full));
  STEPCAST_TRY(read_attention_keys(keys, row.sliding, sliding));
  // Families with a factor also have sinks in the layers with a window.
  if (row.sliding_kv_factor > 1 && !keys.has(row.sliding.n_kv_heads)) {
    sliding.n_kv_heads = row.sliding_kv_factor * model.kv_heads();
    sliding.v_head_dim = full.v_head_dim;
    sliding.attention_sinks = true;
  }
  STEPCAST_TRY(read_other_attention(keys, sliding));
  STEPCAST_TRY(keys.optional("sliding_window", sliding.window_tokens));
  STEPCAST_ASSIGN(const UpperLayers upper, read_upper_layers(keys, model));
  STEPCAST_TRY(refuse_shared_latents(keys));
  // A copy, because append_layer() changes the fields that decide about windows.
  const Transformer whole = model;
  for (std::size_t layer = 0; layer < words.size(); ++layer) {
    // A layer is described by a known word (mixer and FFN) or by a letter (one part).
    const auto* word = std::find_if(std::begin(kLayerWords), std::end(kLayerWords),
                                    [&](const LayerWord& known) { return known.word == words[layer]; });
    std::optional<LayerKind> one_part;
    if (words[layer].size() == 1) one_part = kind_of_letter(words[layer].front());
    const bool is_word = word != std::end(kLayerWords);
    // A word for a recurrent layer means the mixer of the family.
    const bool state_word = is_word && is_recurrent(word->mixer);
    const Mixer mixer = state_word ? row.state.mixer
                        : is_word  ? word->mixer
                        : one_part ? one_part->mixer
                                   : Mixer::none;
    if ((!is_word && !one_part) || (is_recurrent(mixer) && !row.has_state())) {
      return keys.error(row.pattern, fmt::format("layer {} is of a kind that is not modelled", layer))
          .found(fmt::format("`{}`", words[layer].substr(0, 60)));
    }
    LayerKind kind = mixer != Mixer::attention ? LayerKind{} : is_word && word->sliding ? sliding : full;
    kind.mixer = mixer;
    kind.chooses_keys = is_word && word->chooses_keys;
    kind.shares_chosen_keys = mixer == Mixer::attention && !without_indexer.empty() && without_indexer[layer];
    kind.feed_forward = !is_word         ? one_part->feed_forward
                        : experts[layer] ? FeedForward::experts
                                         : FeedForward::dense;
    if (!row.window.empty()) kind.window_tokens = whole.window_tokens(static_cast<std::int64_t>(layer));
    STEPCAST_TRY(read_layer_sizes(keys, layer, kind));
    if (layer >= upper.first) {
      kind.shares_keys_values = true;
      if (upper.double_width) kind.ffn_hidden_size = 2 * model.ffn_hidden_size;
    }
    append_layer(model, kind);
    if (model.layer_kinds.size() > 255) return keys.error(row.pattern, "more than 255 kinds of layers");
  }
  model.sliding_window_tokens = model.global_attention_every_n_layers = 0;
  return Ok{};
}

// Multi-token prediction layers with a pattern of letters.
Status read_further_pattern(const FamilyRow& row, ObjectReader& keys, std::string letters,
                            Transformer& model) {
  if (row.further_pattern.empty()) return Ok{};
  STEPCAST_TRY(keys.optional(row.further_pattern, letters));
  if (letters.empty() || model.n_multi_token_prediction_layers == 0 || set_further_layers(model, letters))
    return Ok{};
  return keys.wrong(row.further_pattern, letters, fmt::format("letters of layers of {}", row.pattern));
}

// Reads num_hidden_layers and the other main sizes. A size that the family already has is the default; others
// are required.
Status read_sizes(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  const std::pair<std::string_view, std::int64_t*> sizes[] = {
      {"num_hidden_layers", &model.n_layers},
      {"hidden_size", &model.hidden_size},
      {"intermediate_size", &model.ffn_hidden_size},
      {"num_attention_heads", &model.n_heads},
      {"vocab_size", &model.vocab_size},
      {"max_position_embeddings", &model.max_position}};
  for (const auto& [key, size] : sizes) {
    // The FFN width is optional if it follows from the model's width.
    const bool follows = row.ffn_times > 0 && size == &model.ffn_hidden_size;
    STEPCAST_TRY(*size > 0 || follows ? keys.optional(key, *size) : keys.required(key, *size));
  }
  if (row.ffn_times > 0 && model.ffn_hidden_size == 0) {
    std::int64_t times = row.ffn_times;
    STEPCAST_TRY(keys.optional("expansion_ratio", times));
    constexpr std::int64_t kLargest = 1'000'000;
    model.ffn_hidden_size = std::min(times, kLargest) * std::min(model.hidden_size, 100 * kLargest);
  }
  if (row.adds_unused) model.max_position += model.unused_positions;
  return Ok{};
}

// Key-value heads, under either of two names. They are required unless the family has a default, latent
// attention, or separate keys.
Status read_key_value_heads(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  const bool in_groups = !keys.has("num_key_value_heads") && keys.has("num_attention_groups");
  if (!row.own_keys && !row.latent && model.n_kv_heads == 0 && !in_groups)
    STEPCAST_TRY(require(keys, "num_key_value_heads"));
  if (in_groups) STEPCAST_TRY(keys.optional("num_attention_groups", model.n_kv_heads));
  for (const auto& [key, size] :
       {std::pair{"num_key_value_heads", &model.n_kv_heads}, std::pair{"head_dim", &model.head_dim}}) {
    const bool is_given = keys.has(key);
    STEPCAST_TRY(keys.optional(key, *size));
    // An explicit 0 is not a default. Configs of latent attention may have it.
    if (is_given && *size == 0 && keys.take(key)->is_number() && !keys.has("kv_lora_rank")) {
      return keys.error(key).found("0").expected("1 or more, or nothing");
    }
  }
  return Ok{};
}

// The share of each head that is rotated: given directly, or as a number of elements.
Status read_rotation(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(keys.optional("partial_rotary_factor", model.rotary_fraction));
  if (row.rotary_width == 0) return Ok{};
  std::int64_t width = row.rotary_width;
  STEPCAST_TRY(keys.optional("rotary_dim", width));
  const std::int64_t head = model.n_heads > 0 ? model.hidden_size / model.n_heads : 0;
  model.rotary_fraction =
      head > 0 ? std::min(1.0, static_cast<double>(width) / static_cast<double>(head)) : 1;
  return Ok{};
}

// The activation. Some families have a `hidden_act` that is not used, and another key that is.
Status read_activation_of(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  if (row.activation != "hidden_act") {
    Activation unused{};
    STEPCAST_TRY(read_activation(keys, "hidden_act", unused));
  }
  return read_activation(keys, row.activation, model.activation);
}

// LFM2: the FFN width is two thirds of the given one times a factor, rounded up to whole steps.
Status read_adjusted_width(ObjectReader& keys, Transformer& model) {
  bool adjusts = false;
  double factor = 1;
  std::int64_t step = 256;
  STEPCAST_TRY(keys.optional("block_auto_adjust_ff_dim", adjusts));
  STEPCAST_TRY(keys.optional("block_ffn_dim_multiplier", factor));
  STEPCAST_TRY(keys.optional("block_multiple_of", step));
  constexpr std::int64_t kWidest = 100'000'000;
  if (!adjusts || model.ffn_hidden_size > kWidest) return Ok{};
  if (step < 1 || step > kWidest || !(factor > 0 && factor < 1000))
    return keys.error("block_multiple_of").expected("1 or more");
  const std::int64_t two_thirds = 2 * model.ffn_hidden_size / 3;
  const auto width = static_cast<std::int64_t>(factor * static_cast<double>(two_thirds));
  model.ffn_hidden_size = (width + step - 1) / step * step;
  return Ok{};
}

// Biases: fixed for the family, or under a key.
Status read_biases(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  for (const auto& [bias, out] : {std::pair{&row.qkv_bias, &model.qkv_bias},
                                  {&row.output_bias, &model.attention_output_bias},
                                  {&row.ffn_bias, &model.ffn_bias}}) {
    *out = bias->otherwise;
    if (!bias->key.empty()) STEPCAST_TRY(keys.optional(bias->key, *out));
  }
  return keys.optional("lm_head_bias", model.head_bias);
}

// Norm placement: before attention and FFN (2 norms), one for both (parallel residual), or before and after each (4).
Status read_norm_placement(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  bool behind = model.norms_per_layer == 4;
  STEPCAST_TRY(keys.optional("use_parallel_residual", model.parallel_residual));
  STEPCAST_TRY(keys.optional("use_post_norm", behind));
  STEPCAST_TRY(keys.optional("use_sandwich_norm", behind));
  if (model.parallel_residual && !row.model.parallel_residual) model.norms_per_layer = 1;
  if (behind) model.norms_per_layer = 4;
  return Ok{};
}

// Sparse attention with an indexer that selects keys, or blocks of keys (MiniMax M3); and several residual streams.
Status read_sparse_parts(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(keys.optional("hc_mult", model.residual_streams));
  const bool of_keys = attention_of(model).traits().indexes_every_layer && keys.has("index_topk");
  if (!of_keys && !keys.has("index_topk_blocks")) return Ok{};
  SparseIndexer index;
  std::int64_t blocks = 0, block_tokens = 0;
  STEPCAST_TRY(keys.required("index_n_heads", index.n_heads));
  STEPCAST_TRY(keys.required("index_head_dim", index.head_dim));
  if (of_keys) {
    STEPCAST_TRY(keys.required("index_topk", index.keys_per_query));
    model.sparse_indexer = index;
    return Ok{};
  }
  STEPCAST_TRY(keys.required("index_topk_blocks", blocks));
  STEPCAST_TRY(keys.required("index_block_size", block_tokens));
  keys.ignore("index_local_blocks");
  constexpr std::int64_t kMost = 1'000'000;
  if (blocks > kMost || block_tokens > kMost)
    return keys.error("index_topk_blocks").expected("at most 1000000");
  index.keys_per_query = blocks * block_tokens;
  model.sparse_indexer = index;
  return Ok{};
}

// transformers 5 writes layers of one part as words; converts them to letters (Nemotron-H).
Status read_parts_by_words(ObjectReader& keys, std::string_view key, std::string& letters) {
  constexpr std::pair<std::string_view, char> kParts[] = {
      {"linear_attention", 'M'}, {"mamba", 'M'}, {"full_attention", '*'},
      {"attention", '*'},        {"moe", 'E'},   {"mlp", '-'}};
  std::vector<std::string> words;
  STEPCAST_TRY(keys.optional(key, words));
  for (const std::string& word : words) {
    const auto* part = std::ranges::find(kParts, word, &std::pair<std::string_view, char>::first);
    if (part == std::end(kParts)) return keys.wrong(key, word, "mamba, attention, moe or mlp");
    letters += part->second;
  }
  return Ok{};
}

// Gates of the attention output: one per element, or one per head.
Status read_gates(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(keys.optional("attn_output_gate", model.attention_output_gate));
  if (const JsonValue* gating = keys.take("gating"); gating != nullptr) {
    model.attention_output_gate = !gating->is_bool() || gating->truth();
    model.gate_per_head = gating->is_bool() || (gating->is_text() && gating->text() == "per-head");
  }
  if (!model.gate_per_head) return Ok{};
  STEPCAST_TRY(keys.optional("use_head_wise_attn_gate", model.attention_output_gate));
  return keys.optional("use_attention_gate", model.attention_output_gate);
}

// Soft-capped logits: on if the limit is above 0.
Status read_softcap(ObjectReader& keys, std::string_view key, bool& out) {
  double limit = out ? 1 : 0;
  STEPCAST_TRY(keys.optional(key, limit));
  out = limit > 0;
  return Ok{};
}

}  // namespace

// Order matters: sizes before windows and experts, which depend on them, and the hook after all columns.
Status read_row(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  const std::string name = std::exchange(model, row.model).name;
  model.name = name;
  show_spellings(row, keys);
  STEPCAST_TRY(check_said(row, keys));
  if (row.state_alone) return read_state_alone(row, keys, model);
  model.norm = row.norm;
  model.norm_bias = row.norm_bias;
  model.gated_ffn = row.gated_ffn;
  model.tied_embeddings = row.tied_otherwise;
  const bool by_words = !row.further_pattern.empty() && keys.has("layers_block_type");
  std::string letters, further_letters;
  if (by_words) {
    STEPCAST_TRY(read_parts_by_words(keys, "layers_block_type", letters));
    model.n_layers = static_cast<std::int64_t>(letters.size());
  }
  STEPCAST_TRY(read_key_value_heads(row, keys, model));
  STEPCAST_TRY(read_sizes(row, keys, model));
  STEPCAST_TRY(read_activation_of(row, keys, model));
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  STEPCAST_TRY(keys.optional("attention_dropout", model.attention_dropout));
  STEPCAST_TRY(read_rotation(row, keys, model));
  if (row.latent) STEPCAST_TRY(read_latents(keys, model));
  if (!row.further_pattern.empty())
    STEPCAST_TRY(read_parts_by_words(keys, "mtp_layers_block_type", further_letters));
  bool qk_norm = model.qk_norm;
  STEPCAST_TRY(read_adjusted_width(keys, model));
  STEPCAST_TRY(read_biases(row, keys, model));
  STEPCAST_TRY(keys.optional("hidden_dropout", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("residual_dropout", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("use_qk_norm", qk_norm));
  STEPCAST_TRY(read_norm_placement(row, keys, model));
  model.qk_norm = qk_norm;
  STEPCAST_TRY(read_gates(keys, model));
  STEPCAST_TRY(read_softcap(keys, "attn_logit_softcapping", model.attention_softcap));
  STEPCAST_TRY(read_softcap(keys, "final_logit_softcapping", model.logit_softcap));
  if (model.n_token_types > 0) STEPCAST_TRY(keys.optional("type_vocab_size", model.n_token_types));
  STEPCAST_TRY(optional_size(keys, row.further_tokens, model.n_multi_token_prediction_layers));
  STEPCAST_TRY(read_said(row, keys, model));
  STEPCAST_TRY(read_expert_sizes(keys, row.experts, model));
  STEPCAST_TRY(keys.optional("dense_intermediate_size", model.ffn_hidden_size));
  STEPCAST_TRY(read_sparse_parts(keys, model));
  // Biases of FFNs are modelled, those of experts are not.
  if (model.moe && model.ffn_bias && !row.ffn_bias.key.empty())
    return keys.error(row.ffn_bias.key, "biases of experts are not modelled here");
  STEPCAST_TRY(read_state(keys, row.state, model));
  STEPCAST_TRY(read_windows(row, keys, model));
  STEPCAST_TRY(run_hook(row.hook, keys, model));
  if (by_words) {
    for (const char letter : letters) append_layer(model, *kind_of_letter(letter));
  } else if (model.layer_kinds.empty()) {
    STEPCAST_TRY(read_pattern(row, keys, model));
  }
  STEPCAST_TRY(read_further_pattern(row, keys, further_letters, model));
  // MiniMax: 1 for each layer with attention. 0 was linear attention in an earlier model and is an error.
  if (const JsonValue* types = row.pattern == "attn_type_list" ? nullptr : keys.take("attn_type_list");
      types != nullptr && !types->is_null()) {
    const auto numbers = types->numbers();
    if (!numbers || std::any_of(numbers->begin(), numbers->end(), [](double type) { return type != 1; })) {
      return keys.error("attn_type_list", "this family has no linear attention").expected("1 everywhere");
    }
  }
  keys.ignore(row.no_shape);
  return Ok{};
}

}  // namespace stepcast::detail

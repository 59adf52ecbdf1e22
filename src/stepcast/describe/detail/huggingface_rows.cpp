#include "stepcast/describe/detail/huggingface_rows.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/words.h"
#include "stepcast/describe/detail/huggingface_readers.h"
#include "stepcast/describe/detail/hybrid_layers.h"
#include "stepcast/workload/modules/attention_module.h"

namespace stepcast::detail {

Result<std::vector<std::string>> read_words(ObjectReader& keys, std::string_view key, std::int64_t n_layers,
                                            std::int64_t further) {
  const JsonValue* list = keys.take(key);
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
  const auto said = static_cast<std::int64_t>(words.size());
  if (said > n_layers && said - n_layers <= further) words.resize(static_cast<std::size_t>(n_layers));
  if (static_cast<std::int64_t>(words.size()) != n_layers) {
    return keys.error(key)
        .found(fmt::format("{} layers", words.size()))
        .expected(fmt::format("as many as num_hidden_layers, {}", n_layers));
  }
  return words;
}

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

// What a word of a pattern says of a layer of two parts; a letter is of one part (hybrid_layers.h).
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

// Of files that only say how far apart layers with full attention are (Qwen3-Next).
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

Status read_attention_keys(ObjectReader& keys, const AttentionKeys& names, LayerKind& kind) {
  STEPCAST_TRY(optional_size(keys, names.n_heads, kind.n_heads));
  STEPCAST_TRY(optional_size(keys, names.n_kv_heads, kind.n_kv_heads));
  STEPCAST_TRY(optional_size(keys, names.head_dim, kind.head_dim));
  STEPCAST_TRY(optional_size(keys, names.v_head_dim, kind.v_head_dim));
  if (!names.sinks.empty()) STEPCAST_TRY(keys.optional(names.sinks, kind.attention_sinks));
  return names.values_are_keys.empty() ? Status{Ok{}}
                                       : keys.optional(names.values_are_keys, kind.values_are_keys);
}

// All layers have a state but those of a list of numbers.
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

// What each layer is by one word or letter; all the same of files that say nothing.
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
  // Transformers 5 gives every family the same key, and leaves to the class what only some layers have.
  const std::string_view pattern =
      !row.pattern.empty() && !keys.has(row.pattern) && keys.has("layer_types") ? "layer_types" : row.pattern;
  if (pattern != "layer_types" && keys.has(pattern)) keys.ignore("layer_types");  // which says it again
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

// Heads that layers with a window have for themselves (Step 3.5).
Status read_other_attention(ObjectReader& keys, LayerKind& sliding) {
  STEPCAST_ASSIGN(auto other, keys.section("attention_other_setting"));
  if (!other) return Ok{};
  STEPCAST_TRY(other->optional("num_attention_heads", sliding.n_heads));
  STEPCAST_TRY(other->optional("num_attention_groups", sliding.n_kv_heads));
  STEPCAST_TRY(other->optional("head_dim", sliding.head_dim));
  other->ignore("attention_type true_head_dim");
  return other->finish();
}

// {"05": {"head_dim": 512}}: sizes that single layers have for themselves (transformers 5).
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
  for (const JsonValue::Member& member : all->members()) {
    std::size_t number = 0;
    const char* end = member.key.data() + member.key.size();
    if (std::from_chars(member.key.data(), end, number).ptr == end && number == layer) own = &member.value;
  }
  if (own == nullptr) return Ok{};
  STEPCAST_ASSIGN(ObjectReader sizes,
                  ObjectReader::of(*own, "per_layer_config", keys.file(), NullMeans::absent));
  STEPCAST_TRY(sizes.optional("num_attention_heads", kind.n_heads));
  STEPCAST_TRY(sizes.optional("num_key_value_heads", kind.n_kv_heads));
  STEPCAST_TRY(sizes.optional("head_dim", kind.head_dim));
  STEPCAST_TRY(sizes.optional("intermediate_size", kind.ffn_hidden_size));
  return sizes.finish();
}

// Upper layers that take keys and values of one below, at times with a wider FFN, and vectors that each layer has for
// itself (Gemma 4 E2B and E4B).
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

// Layers that differ in experts alone, with the dense ones in front, need no kinds.
bool are_dense_in_front(const std::vector<bool>& experts, Transformer& model) {
  const auto first = std::find(experts.begin(), experts.end(), true);
  if (std::find(first, experts.end(), false) != experts.end()) return false;
  if (model.moe) model.moe->first_dense_layers = first - experts.begin();
  return true;
}

// "kv_source_layers": whose latent vectors each layer attends to, all of them their own.
Status refuse_shared_latents(ObjectReader& keys) {
  const JsonValue* list = keys.take("kv_source_layers");
  const auto sources = list == nullptr ? std::nullopt : list->numbers();
  for (std::size_t layer = 0; sources && layer < sources->size(); ++layer) {
    if ((*sources)[layer] != static_cast<double>(layer))
      return keys.error("kv_source_layers", "latent vectors that layers share are not modelled");
  }
  return Ok{};
}

Status read_pattern(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  STEPCAST_ASSIGN(const std::vector<bool> experts, read_expert_layers(keys, row.experts, model));
  STEPCAST_ASSIGN(const std::vector<std::string> words, read_layer_words(row, keys, model));
  if (row.pattern.empty() && !keys.has("per_layer_config") && !keys.has("attn_layer_period") &&
      are_dense_in_front(experts, model))
    return Ok{};
  if (model.moe) model.moe->first_dense_layers = 0;
  LayerKind full, sliding;
  full.attention_sinks = sliding.attention_sinks = model.attention_sinks;
  STEPCAST_TRY(read_attention_keys(keys, row.full, full));
  STEPCAST_TRY(read_attention_keys(keys, row.sliding, sliding));
  if (row.sliding_kv_factor > 1 && !keys.has(row.sliding.n_kv_heads)) {
    sliding.n_kv_heads = row.sliding_kv_factor * model.kv_heads();
    sliding.v_head_dim = full.v_head_dim;
    sliding.attention_sinks = true;
  }
  STEPCAST_TRY(read_other_attention(keys, sliding));
  STEPCAST_TRY(keys.optional("sliding_window", sliding.window_tokens));
  STEPCAST_ASSIGN(const UpperLayers upper, read_upper_layers(keys, model));
  std::vector<bool> without_indexer;
  if (attention_of(model).traits().indexes_every_layer && model.sparse_indexer) {
    STEPCAST_ASSIGN(without_indexer, layers_without_indexer(keys, model.n_layers));
  }
  STEPCAST_TRY(refuse_shared_latents(keys));
  for (std::size_t layer = 0; layer < words.size(); ++layer) {
    const auto* word = std::find_if(std::begin(kLayerWords), std::end(kLayerWords),
                                    [&](const LayerWord& known) { return known.word == words[layer]; });
    std::optional<LayerKind> one_part;
    if (words[layer].size() == 1) one_part = kind_of_letter(words[layer].front());
    const bool is_word = word != std::end(kLayerWords);
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
    STEPCAST_TRY(read_layer_sizes(keys, layer, kind));
    if (layer >= upper.first) {
      kind.shares_keys_values = true;
      if (upper.double_width) kind.ffn_hidden_size = 2 * model.ffn_hidden_size;
    }
    append_layer(model, kind);
    if (model.layer_kinds.size() > 255) return keys.error(row.pattern, "more than 255 kinds of layers");
  }
  return Ok{};
}

Status read_further_pattern(const FamilyRow& row, ObjectReader& keys, std::string letters,
                            Transformer& model) {
  if (row.further_pattern.empty()) return Ok{};
  STEPCAST_TRY(keys.optional(row.further_pattern, letters));
  if (letters.empty() || model.n_multi_token_prediction_layers == 0 || set_further_layers(model, letters))
    return Ok{};
  return keys.wrong(row.further_pattern, letters, fmt::format("letters of layers that {} has", row.pattern));
}

// Off: false, 0, nothing.
Status refuse_what_is_on(const FamilyRow& row, ObjectReader& keys) {
  Status status = Ok{};
  (void)any_word(row.must_be_off, [&](std::string_view key) {
    const JsonValue* value = keys.take(key);
    if (value == nullptr || value->is_null() || (value->is_array() && value->items().empty())) return false;
    const std::string said = describe_value(*value);
    if (said == "false" || said == "0" || said == "0.0") return false;
    status = keys.error(key, "this part is not modelled").found(said).expected("nothing, false or 0");
    return true;
  });
  return status;
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

// Groups of keys and values under either name.
Status read_key_value_heads(ObjectReader& keys, Transformer& model) {
  if (keys.has("num_key_value_heads") || !keys.has("num_attention_groups")) return require_kv_heads(keys);
  return keys.optional("num_attention_groups", model.n_kv_heads);
}

// LFM2: two thirds of what is said, in whole steps.
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

Status read_biases(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  for (const auto& [bias, out] : {std::pair{&row.qkv_bias, &model.qkv_bias},
                                  {&row.output_bias, &model.attention_output_bias},
                                  {&row.ffn_bias, &model.ffn_bias}}) {
    *out = bias->otherwise;
    if (!bias->key.empty()) STEPCAST_TRY(keys.optional(bias->key, *out));
  }
  return keys.optional("lm_head_bias", model.head_bias);
}

// Attention and FFN behind one norm each, both behind one, or norms in front and behind.
Status read_norm_placement(ObjectReader& keys, Transformer& model) {
  bool behind = model.norms_per_layer == 4;
  STEPCAST_TRY(keys.optional("use_parallel_residual", model.parallel_residual));
  STEPCAST_TRY(keys.optional("use_post_norm", behind));
  STEPCAST_TRY(keys.optional("use_sandwich_norm", behind));
  if (model.parallel_residual) model.norms_per_layer = 1;
  if (behind) model.norms_per_layer = 4;
  return Ok{};
}

// Keys, or blocks of them (MiniMax M3), of which an indexer chooses some; several residual streams.
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

// Layers of one part each by words, instead of letters: as transformers 5 writes Nemotron-H.
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

}  // namespace

Status read_row(const FamilyRow& row, ObjectReader& keys, Transformer& model) {
  const std::string name = std::exchange(model, row.model).name;
  model.name = name;
  if (!row.own_keys && !row.latent) STEPCAST_TRY(read_key_value_heads(keys, model));
  const bool says_tied = keys.has("tie_word_embeddings");
  const bool by_words = !row.further_pattern.empty() && keys.has("layers_block_type");
  std::string letters, further_letters;
  if (by_words) STEPCAST_TRY(read_parts_by_words(keys, "layers_block_type", letters));
  model.n_layers = static_cast<std::int64_t>(letters.size());
  STEPCAST_TRY(read_llama_like(keys, model));
  if (row.latent) STEPCAST_TRY(read_latents(keys, model));
  if (!row.further_pattern.empty())
    STEPCAST_TRY(read_parts_by_words(keys, "mtp_layers_block_type", further_letters));
  model.norm = row.norm;
  model.norm_bias = row.norm_bias;
  model.gated_ffn = row.gated_ffn;
  if (!model.gated_ffn && !keys.has(row.activation)) model.activation = row.model.activation;
  model.position = row.model.position == PositionEncoding::none ? PositionEncoding::none : model.position;
  if (row.activation != "hidden_act") {
    model.activation = row.model.activation;
    STEPCAST_TRY(read_activation(keys, row.activation, model.activation));
  }
  if (!says_tied) model.tied_embeddings = row.tied_otherwise;
  bool qk_norm = model.qk_norm;
  STEPCAST_TRY(read_adjusted_width(keys, model));
  STEPCAST_TRY(read_biases(row, keys, model));
  STEPCAST_TRY(keys.optional("hidden_dropout", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("residual_dropout", model.hidden_dropout));
  STEPCAST_TRY(keys.optional("use_qk_norm", qk_norm));
  STEPCAST_TRY(read_norm_placement(keys, model));
  model.qk_norm = qk_norm;
  STEPCAST_TRY(keys.optional("attn_output_gate", model.attention_output_gate));
  if (const JsonValue* gating = keys.take("gating"); gating != nullptr) {
    model.attention_output_gate = !gating->is_bool() || gating->truth();
    model.gate_per_head = gating->is_bool() || (gating->is_text() && gating->text() == "per-head");
  }
  if (model.gate_per_head) {
    STEPCAST_TRY(keys.optional("use_head_wise_attn_gate", model.attention_output_gate));
    STEPCAST_TRY(keys.optional("use_attention_gate", model.attention_output_gate));
  }
  double logits = 0;
  STEPCAST_TRY(keys.optional("final_logit_softcapping", logits));
  model.logit_softcap = logits > 0;
  STEPCAST_TRY(optional_size(keys, row.further_tokens, model.n_multi_token_prediction_layers));
  STEPCAST_TRY(refuse_what_is_on(row, keys));
  STEPCAST_TRY(read_expert_sizes(keys, row.experts, model));
  STEPCAST_TRY(keys.optional("dense_intermediate_size", model.ffn_hidden_size));
  STEPCAST_TRY(read_sparse_parts(keys, model));
  if (model.moe && model.ffn_bias)
    return keys.error(row.ffn_bias.key, "biases of experts are not modelled here");
  STEPCAST_TRY(read_state(keys, row.state, model));
  if (by_words) {
    for (const char letter : letters) append_layer(model, *kind_of_letter(letter));
  } else {
    STEPCAST_TRY(read_pattern(row, keys, model));
  }
  STEPCAST_TRY(read_further_pattern(row, keys, further_letters, model));
  // MiniMax: a list of 1 for every layer with attention; 0 was linear attention of an earlier model.
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

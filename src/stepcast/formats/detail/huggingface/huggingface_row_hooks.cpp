// Special cases of single families that no column of tables/huggingface_families.json can express. The column
// `hook` names a function of this file, which runs after all other columns.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/formats/detail/huggingface/huggingface_readers.h"
#include "stepcast/formats/detail/huggingface/huggingface_rows.h"
#include "stepcast/formats/detail/hybrid_layers.h"
#include "stepcast/workload/modules/attention_module.h"

namespace stepcast::detail {
namespace {

// Falcon: the number of key-value heads and of norms depends on three switches.
Status read_falcon(ObjectReader& keys, Transformer& model) {
  bool multi_query = true, grouped = false;
  STEPCAST_TRY(keys.optional("multi_query", multi_query));
  STEPCAST_TRY(keys.optional("new_decoder_architecture", grouped));
  model.n_kv_heads = grouped ? model.kv_heads() : multi_query ? 1 : model.n_heads;
  // Attention and FFN share a norm in older models. In newer ones each has a norm, unless the file says that
  // they share it.
  std::int64_t norms = grouped ? 2 : 1;
  STEPCAST_TRY(keys.optional("num_ln_in_parallel_attn", norms));
  model.norms_per_layer = model.parallel_residual ? norms : 2;
  return Ok{};
}

// GPT-Neo: layers with full and with windowed attention alternate. Other patterns are errors.
Status read_gpt_neo(ObjectReader& keys, Transformer& /*model*/) {
  std::vector<std::string> layers;
  STEPCAST_TRY(keys.optional("attention_layers", layers));
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (layers[layer] == (layer % 2 == 0 ? "global" : "local")) continue;
    return keys.error("attention_layers", "not understood").expected("global and local alternately");
  }
  return Ok{};
}

// XLNet: one dropout for everything. It is modelled with one stream of attention, as in fine-tuning and in
// published measurements. Pre-training with permutations has two.
Status read_xlnet(ObjectReader& /*keys*/, Transformer& model) {
  model.attention_dropout = model.hidden_dropout;
  return Ok{};
}

// Llama 3.2 Vision: listed layers attend to image vectors. Their number is set later, from the vision tower.
Status read_mllama_text(ObjectReader& keys, Transformer& model) {
  const JsonValue* list = keys.take("cross_attention_layers");
  const auto cross = list == nullptr ? std::nullopt : list->numbers();
  if (!cross) return keys.error("cross_attention_layers").expected("a list of numbers of layers");
  for (std::int64_t layer = 0; layer < model.n_layers && layer < 10'000; ++layer) {
    const bool looks = std::ranges::count(*cross, static_cast<double>(layer)) > 0;
    append_layer(model, {.cross_tokens = looks ? 1 : 0});
  }
  return Ok{};
}

// Llama 4: every N-th layer has experts, or those in a list, which must be the same layers. There are no
// experts if N is 0 or the list is empty.
Status read_llama4_text(ObjectReader& keys, Transformer& model) {
  std::int64_t every = 1;
  STEPCAST_TRY(keys.optional("decoder_sparse_step", every));
  const JsonValue* list = keys.take("moe_layers");
  const auto with_experts = list == nullptr ? std::nullopt : list->numbers();
  if (every == 0 || (with_experts && with_experts->empty())) model.moe.reset();
  for (std::size_t i = 0; model.moe && with_experts && i < with_experts->size(); ++i) {
    const double usual = static_cast<double>(static_cast<std::int64_t>(i + 1) * every - 1);
    if ((*with_experts)[i] == usual) continue;
    return keys.error("moe_layers", "experts in layers at irregular distances are not modelled")
        .found(fmt::format("layer {:g}", (*with_experts)[i]))
        .expected(fmt::format("{:g}, as interleave_moe_layer_step says", usual));
  }
  return Ok{};
}

// LongCat-Flash: each layer of the file is two layers of latent attention and dense FFN, with experts that
// run in parallel to the second. Some router choices are "zero experts", which return the token unchanged.
Status read_longcat(ObjectReader& keys, Transformer& model) {
  if (!model.moe) return keys.wrong("n_routed_experts", 0, "1 or more");
  MixtureOfExperts& moe = *model.moe;
  const std::int64_t choices = moe.experts_per_token;
  STEPCAST_TRY(keys.optional("zero_expert_num", moe.zero_experts));
  constexpr std::int64_t kMost = 100'000;
  if (model.n_layers > kMost || moe.n_experts > kMost || moe.zero_experts > kMost || choices > kMost)
    return keys.error("num_hidden_layers").expected("sizes below 100000");
  // The router's biases are adjusted so that choices are spread over all experts, including zero experts.
  // Thus only a fraction of the choices reach real experts.
  const std::int64_t all = std::max<std::int64_t>(1, moe.n_experts + moe.zero_experts);
  moe.experts_per_token = std::max<std::int64_t>(1, (choices * moe.n_experts + all / 2) / all);
  model.n_layers *= 2;
  for (std::int64_t layer = 0; layer < model.n_layers; ++layer)
    append_layer(model, {.feed_forward = layer % 2 == 0 ? LayerKind::FeedForward::experts
                                                        : LayerKind::FeedForward::dense});
  return Ok{};
}

// DeepSeek-V4: which compressed keys each layer attends to, in addition to the window. A layer is given by a
// word, or by the number of tokens per compressed key (0, 4, 128).
Status read_compressed_layers(ObjectReader& keys, std::int64_t window, Transformer& model) {
  constexpr std::int64_t kChosen = 4, kAll = 128;
  // A kind of layer: its name, its number, tokens per compressed key, and whether an indexer selects keys.
  struct Word {
    std::string_view word, number;
    std::int64_t tokens;
    bool chooses;
  };
  constexpr Word kWords[] = {{"sliding_attention", "0", 0, false},
                             {"compressed_sparse_attention", "4", kChosen, true},
                             {"heavily_compressed_attention", "128", kAll, false}};
  if (const JsonValue* rates = keys.take("compress_rates"); rates != nullptr && rates->is_object()) {
    for (const Word& known : kWords) {
      const JsonValue* rate = rates->find(known.word);
      if (rate == nullptr || describe_value(*rate) == known.number) continue;
      return keys.error("compress_rates", fmt::format("{} is not modelled with this rate", known.word))
          .found(describe_value(*rate))
          .expected(std::string{known.number});
    }
  }
  const std::string_view key = keys.has("layer_types") ? "layer_types" : "compress_ratios";
  const JsonValue* list = keys.take(key);
  const auto n_layers = static_cast<std::size_t>(model.n_layers);
  const std::size_t most = n_layers + static_cast<std::size_t>(model.n_multi_token_prediction_layers);
  if (list == nullptr || !list->is_array() || list->items().size() < n_layers ||
      list->items().size() > most) {
    return keys
        .error(list == nullptr ? "" : key, fmt::format("`{}` does not give the kind of each layer", key))
        .expected(fmt::format("a list of {} layers, and of the extra prediction layers", n_layers));
  }
  for (std::size_t layer = 0; layer < list->items().size(); ++layer) {
    const JsonValue& item = list->items()[layer];
    const std::string said = item.is_text() ? item.text() : describe_value(item);
    const auto* word = std::find_if(std::begin(kWords), std::end(kWords), [&](const Word& known) {
      return known.word == said || known.number == said;
    });
    if (word == std::end(kWords)) {
      return keys.error(key, fmt::format("layer {} is of a kind that is not modelled", layer))
          .found(fmt::format("`{}`", said.substr(0, 60)))
          .expected("0, 4 or 128 tokens of one key");
    }
    const LayerKind kind{.feed_forward = LayerKind::FeedForward::experts,
                         .window_tokens = window,
                         .attention_sinks = true,
                         .values_are_keys = true,
                         .compressed_tokens = word->tokens,
                         .chooses_keys = word->chooses};
    // Layers after the last one are multi-token prediction layers and must be equal to a known kind.
    if (layer < n_layers) {
      append_layer(model, kind);
    } else if (const auto like = std::ranges::find(model.layer_kinds, kind);
               like != model.layer_kinds.end() && layer == n_layers) {
      model.kinds_of_further_layer = {static_cast<std::uint8_t>(like - model.layer_kinds.begin())};
    }
  }
  return Ok{};
}

// DeepSeek-V4: low-rank attention to a window and to compressed keys, experts in all layers, several residual streams.
Status read_deepseek_v4(ObjectReader& keys, Transformer& model) {
  if (!model.moe) return keys.wrong("n_routed_experts", 0, "1 or more");
  std::int64_t q_rank = 0, output_groups = 0, output_rank = 0;
  SparseIndexer index;
  std::int64_t rotated = 64, window = 128;
  for (const auto& [key, size] : {std::pair{"q_lora_rank", &q_rank},
                                  {"o_groups", &output_groups},
                                  {"o_lora_rank", &output_rank},
                                  {"index_n_heads", &index.n_heads},
                                  {"index_head_dim", &index.head_dim},
                                  {"index_topk", &index.keys_per_query}}) {
    STEPCAST_TRY(keys.required(key, *size));
  }
  STEPCAST_TRY(keys.optional("qk_rope_head_dim", rotated));
  STEPCAST_TRY(keys.optional("sliding_window", window));
  if (model.n_kv_heads != 1 || model.head_dim == 0 || rotated > model.head_dim) {
    return keys.error("num_key_value_heads", "keys and values are one vector of all heads")
        .found(fmt::format("{} of width {}", model.n_kv_heads, model.head_dim))
        .expected("1, and a head_dim of at least qk_rope_head_dim");
  }
  model.rotary_fraction = static_cast<double>(rotated) / static_cast<double>(model.head_dim);
  model.attention = attention_named(
      "low_rank", {{"q_rank", q_rank}, {"output_rank", output_rank}, {"output_groups", output_groups}});
  model.sparse_indexer = index;
  return read_compressed_layers(keys, window, model);
}

// FFN width of DeciLM: two thirds of `multiple` times the hidden size, rounded up to a multiple of 256.
std::int64_t width_of_multiple(double multiple, std::int64_t hidden_size) {
  const auto width = static_cast<std::int64_t>(2 * multiple * static_cast<double>(hidden_size) / 3);
  return (width + 255) / 256 * 256;
}

// One layer of `block_configs`: sizes of attention and FFN, each of them may be missing ("no_op").
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
      refuse_if_true(*attention, "replace_with_linear", "attention as a single matrix is not modelled"));
  STEPCAST_TRY(refuse_if_true(*attention, "unshifted_sink", "sinks of attention are not modelled here"));
  (void)attention->take("use_prefill_window_in_sink_attention");  // only affects generation
  STEPCAST_TRY(attention->finish());
  double multiple = 0;
  STEPCAST_TRY(ffn->optional("no_op", no_ffn));
  STEPCAST_TRY(ffn->optional("ffn_mult", multiple));
  STEPCAST_TRY(refuse_if_true(*ffn, "replace_with_linear", "an FFN as a single matrix is not modelled"));
  STEPCAST_TRY(ffn->finish());
  STEPCAST_TRY(parts.finish());
  constexpr double kWidest = 1000;
  if (group < 1 || !(multiple >= 0 && multiple <= kWidest)) {
    return parts.error("", "a layer without a size").expected("n_heads_in_group and ffn_mult above 0");
  }
  kind.mixer = no_attention ? Mixer::none : Mixer::attention;
  if (!no_attention) kind.n_kv_heads = std::max<std::int64_t>(1, model.n_heads / group);
  kind.feed_forward = no_ffn ? LayerKind::FeedForward::none : LayerKind::FeedForward::dense;
  if (!no_ffn) kind.ffn_hidden_size = width_of_multiple(multiple, model.hidden_size);
  return Ok{};
}

// Nemotron Super: layers that an architecture search selected individually. Each has attention or none, and
// its own FFN width.
Status read_nemotron_nas(ObjectReader& keys, Transformer& model) {
  const JsonValue* blocks = keys.take("block_configs");
  const auto wrong = [&](std::string problem) { return keys.error("block_configs", std::move(problem)); };
  if (blocks == nullptr || !blocks->is_array()) {
    return keys.error("", "`block_configs` is missing").expected("a list of the kinds of all layers");
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

}  // namespace

// An unknown or empty name runs nothing.
Status run_hook(std::string_view name, ObjectReader& keys, Transformer& model) {
  constexpr struct {
    std::string_view name;
    Status (*read)(ObjectReader&, Transformer&);
  } kHooks[] = {
      {"falcon", read_falcon},           {"gpt_neo", read_gpt_neo},          {"xlnet", read_xlnet},
      {"mllama_text", read_mllama_text}, {"llama4_text", read_llama4_text},  {"longcat", read_longcat},
      {"deepseek_v4", read_deepseek_v4}, {"nemotron_nas", read_nemotron_nas}};
  for (const auto& hook : kHooks)
    if (hook.name == name) return hook.read(keys, model);
  return Ok{};
}

}  // namespace stepcast::detail

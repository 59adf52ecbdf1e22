#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "stepcast/describe/detail/huggingface_readers.h"
#include "stepcast/describe/detail/hybrid_layers.h"
#include "stepcast/workload/modules/attention_module.h"

namespace stepcast::detail {

Status read_mixtral(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_mistral(keys, model));
  MixtureOfExperts moe;
  STEPCAST_TRY(keys.required("num_local_experts", moe.n_experts));
  STEPCAST_TRY(keys.required("num_experts_per_tok", moe.experts_per_token));
  moe.expert_ffn_hidden_size = model.ffn_hidden_size;
  model.moe = moe;
  return Ok{};
}

namespace {

// Routing that is limited to groups of experts, as DeepSeek's configs say it.
Status read_expert_groups(ObjectReader& keys, MixtureOfExperts& moe) {
  STEPCAST_TRY(keys.optional("n_group", moe.n_groups));
  moe.n_groups = std::max<std::int64_t>(1, moe.n_groups);
  moe.groups_per_token = moe.n_groups;
  STEPCAST_TRY(keys.optional("topk_group", moe.groups_per_token));
  // DeepSeek-V2-Lite names groups that its "greedy" routing does not look at.
  std::string method;
  if (const JsonValue* said = keys.take("topk_method"); said != nullptr && said->is_text())
    method = said->text();
  if (method == "greedy") moe.n_groups = moe.groups_per_token = 1;
  return Ok{};
}

Status read_qwen_experts(ObjectReader& keys, Transformer& model) {
  MixtureOfExperts moe;
  // Transformers 5 writes the second name.
  const bool renamed = !keys.has("num_experts") && keys.has("num_local_experts");
  STEPCAST_TRY(keys.required(renamed ? "num_local_experts" : "num_experts", moe.n_experts));
  STEPCAST_TRY(keys.required("num_experts_per_tok", moe.experts_per_token));
  STEPCAST_TRY(keys.required("moe_intermediate_size", moe.expert_ffn_hidden_size));
  if (!model.layer_kinds.empty())
    return keys.error("layer_types", "windows in some layers of experts are not modelled");
  STEPCAST_TRY(keys.optional("decoder_sparse_step", moe.moe_every_n_layers));
  if (const JsonValue* dense = keys.take("mlp_only_layers")) {
    const auto layers = dense->numbers();
    for (std::size_t i = 0; layers && i < layers->size(); ++i) {
      if ((*layers)[i] != static_cast<double>(i)) {
        return keys.error("mlp_only_layers", "only layers in front can be without experts");
      }
    }
    if (!layers)
      return keys.error("mlp_only_layers").found(describe_value(*dense)).expected("a list of numbers");
    moe.first_dense_layers = static_cast<std::int64_t>(layers->size());
    if (moe.moe_every_n_layers > 1 && moe.first_dense_layers % moe.moe_every_n_layers != 0) {
      return keys.error("mlp_only_layers", "does not fit decoder_sparse_step");
    }
  }
  model.moe = moe;
  return Ok{};
}

}  // namespace

Status read_qwen2_moe(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_qwen2(keys, model));
  STEPCAST_TRY(keys.optional("qkv_bias", model.qkv_bias));
  STEPCAST_TRY(read_qwen_experts(keys, model));
  STEPCAST_TRY(keys.required("shared_expert_intermediate_size", model.moe->shared_ffn_hidden_size));
  model.moe->n_shared_experts = 1;
  model.moe->shared_expert_gate = true;
  return Ok{};
}

Status read_qwen3_moe(ObjectReader& keys, Transformer& model) {
  const bool says_width = keys.has("head_dim");
  STEPCAST_TRY(read_qwen3(keys, model));
  if (!says_width) model.head_dim = 0;
  STEPCAST_TRY(refuse_if_true(keys, "qkv_bias", "this family has no biases there"));
  STEPCAST_TRY(refuse_if_false(keys, "use_qk_norm", "this family has norms of queries and keys"));
  std::int64_t shared = 0;
  STEPCAST_TRY(keys.optional("shared_expert_intermediate_size", shared));
  if (shared != 0) {
    return keys.error("shared_expert_intermediate_size", "this family has no shared experts")
        .found(fmt::format("{}", shared))
        .expected("0");
  }
  return read_qwen_experts(keys, model);
}

Status read_olmoe(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_olmo2(keys, model));
  MixtureOfExperts moe;
  moe.n_experts = 64;
  moe.experts_per_token = 8;
  STEPCAST_TRY(keys.optional("num_experts", moe.n_experts));
  STEPCAST_TRY(keys.optional("num_experts_per_tok", moe.experts_per_token));
  moe.expert_ffn_hidden_size = model.ffn_hidden_size;
  model.moe = moe;
  (void)keys.take("clip_qkv");  // no shape
  return Ok{};
}

namespace {

// Which layers of a list say `word`; all others must say `other`. None without a list.
Result<std::vector<bool>> layers_of_word(ObjectReader& keys, std::string_view key, std::int64_t n_layers,
                                         std::string_view word, std::string_view other) {
  std::vector<bool> is;
  const JsonValue* list = keys.take(key);
  if (list == nullptr || list->is_null()) return is;
  if (!list->is_array() || static_cast<std::int64_t>(list->items().size()) != n_layers)
    return keys.error(key).found(describe_value(*list)).expected("a word for each layer");
  for (const JsonValue& item : list->items()) {
    is.push_back(item.is_text() && item.text() == word);
    if (is.back() || (item.is_text() && item.text() == other)) continue;
    return keys.error(key, fmt::format("layer {} is of a kind that is not modelled", is.size() - 1))
        .found(describe_value(item))
        .expected(word == other ? fmt::format("`{}`", word) : fmt::format("`{}` or `{}`", other, word));
  }
  return is;
}

// "mlp_layer_types": dense in front, sparse behind.
Status read_dense_in_front(ObjectReader& keys, Transformer& model) {
  STEPCAST_ASSIGN(const std::vector<bool> dense,
                  layers_of_word(keys, "mlp_layer_types", model.n_layers, "dense", "sparse"));
  if (dense.empty() || !model.moe) return Ok{};
  const auto first = std::find(dense.begin(), dense.end(), false);
  if (std::find(first, dense.end(), true) != dense.end())
    return keys.error("mlp_layer_types", "dense layers behind layers of experts are not modelled");
  model.moe->first_dense_layers = first - dense.begin();
  return Ok{};
}

}  // namespace

Status read_attention_sizes(ObjectReader& keys, std::string_view kind, Transformer& model) {
  model.attention = attention_named(kind, {});
  const auto sizes = model.attention.module->traits().sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::int64_t& value = model.attention.sizes[i];
    STEPCAST_TRY(sizes[i].required ? keys.required(sizes[i].key, value) : keys.optional(sizes[i].key, value));
  }
  return Ok{};
}

Status read_latents(ObjectReader& keys, Transformer& model) {
  model.n_kv_heads = model.head_dim = 0;  // as latent attention has it; head_dim there is the rotated part
  STEPCAST_TRY(refuse_if_false(keys, "use_mla", "without latent attention this family is not read"));
  STEPCAST_TRY(refuse_if_true(keys, "attention_bias", "biases of latent attention are not supported"));
  STEPCAST_TRY(refuse_if_true(keys, "mlp_bias", "biases of experts are not modelled here"));
  STEPCAST_TRY(read_attention_sizes(keys, "latent", model));
  std::int64_t qk_head_dim = model.qk_head_dim();
  STEPCAST_TRY(keys.optional("qk_head_dim", qk_head_dim));
  if (qk_head_dim != model.qk_head_dim())
    return keys.wrong("qk_head_dim", qk_head_dim, "qk_nope_head_dim + qk_rope_head_dim");
  return keys.optional("num_nextn_predict_layers", model.n_multi_token_prediction_layers);
}

Status read_deepseek(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_llama_like(keys, model));
  STEPCAST_TRY(read_latents(keys, model));
  if (!keys.has("n_routed_experts")) return Ok{};
  MixtureOfExperts moe;
  STEPCAST_TRY(keys.required("n_routed_experts", moe.n_experts));
  STEPCAST_TRY(keys.required("num_experts_per_tok", moe.experts_per_token));
  STEPCAST_TRY(keys.required("moe_intermediate_size", moe.expert_ffn_hidden_size));
  STEPCAST_TRY(keys.optional("n_shared_experts", moe.n_shared_experts));
  if (moe.n_shared_experts > 0) moe.shared_ffn_hidden_size = moe.expert_ffn_hidden_size;
  STEPCAST_TRY(keys.optional("first_k_dense_replace", moe.first_dense_layers));
  std::int64_t frequency = 1;
  STEPCAST_TRY(keys.optional("moe_layer_freq", frequency));
  if (frequency != 1) return keys.wrong("moe_layer_freq", frequency, "1");
  STEPCAST_TRY(read_expert_groups(keys, moe));
  model.moe = moe;
  return read_dense_in_front(keys, model);
}

Status read_longcat(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(keys.required("num_layers", model.n_layers));
  STEPCAST_TRY(keys.required("ffn_hidden_size", model.ffn_hidden_size));
  STEPCAST_TRY(read_llama_like(keys, model));
  STEPCAST_TRY(read_latents(keys, model));
  MixtureOfExperts moe{.n_shared_experts = 1, .shared_ffn_hidden_size = model.ffn_hidden_size};
  std::int64_t choices = 0;
  STEPCAST_TRY(keys.required("n_routed_experts", moe.n_experts));
  STEPCAST_TRY(keys.required("moe_topk", choices));
  STEPCAST_TRY(keys.required("expert_ffn_hidden_size", moe.expert_ffn_hidden_size));
  STEPCAST_TRY(keys.optional("zero_expert_num", moe.zero_experts));
  STEPCAST_TRY(refuse_if_true(keys, "router_bias", "a router with trained biases is not modelled here"));
  keys.ignore(
      "zero_expert_type attention_method mla_scale_q_lora mla_scale_kv_lora num_key_value_heads head_dim");
  constexpr std::int64_t kMost = 100'000;
  if (model.n_layers > kMost || moe.n_experts > kMost || moe.zero_experts > kMost || choices > kMost)
    return keys.error("num_layers").expected("sizes below 100000");
  // Choices spread over all, as the router's biases are steered.
  const std::int64_t all = std::max<std::int64_t>(1, moe.n_experts + moe.zero_experts);
  moe.experts_per_token = std::max<std::int64_t>(1, (choices * moe.n_experts + all / 2) / all);
  model.moe = moe;
  model.n_layers *= 2;
  for (std::int64_t layer = 0; layer < model.n_layers; ++layer)
    append_layer(model, {.feed_forward = layer % 2 == 0 ? LayerKind::FeedForward::experts
                                                        : LayerKind::FeedForward::dense});
  return Ok{};
}

Result<std::vector<bool>> layers_without_indexer(ObjectReader& keys, std::int64_t n_layers) {
  std::string letters;
  std::int64_t every = 1, offset = 2;
  if (const JsonValue* pattern = keys.take("index_topk_pattern"); pattern != nullptr && pattern->is_text())
    letters = pattern->text();
  STEPCAST_TRY(keys.optional("index_topk_freq", every));
  STEPCAST_TRY(keys.optional("index_skip_topk_offset", offset));
  if (keys.has("indexer_types")) return layers_of_word(keys, "indexer_types", n_layers, "shared", "full");
  if (!letters.empty() && static_cast<std::int64_t>(letters.size()) != n_layers)
    return keys.error("index_topk_pattern").found(letters.substr(0, 60)).expected("a letter for each layer");
  std::vector<bool> without;
  constexpr std::int64_t kMostLayers = 1'000'000;
  for (std::int64_t layer = 0; layer < std::min(n_layers, kMostLayers); ++layer) {
    without.push_back(letters.empty() ? takes_chosen_keys(layer, every, offset)
                                      : letters[static_cast<std::size_t>(layer)] == 'S');
  }
  return without;
}

Status read_deepseek_sparse(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(read_deepseek(keys, model));
  SparseIndexer index;
  STEPCAST_TRY(keys.required("index_n_heads", index.n_heads));
  STEPCAST_TRY(keys.required("index_head_dim", index.head_dim));
  STEPCAST_TRY(keys.required("index_topk", index.keys_per_query));
  model.sparse_indexer = index;
  // Lists of newer files: all attention is sparse.
  STEPCAST_ASSIGN(const std::vector<bool> sparse, layers_of_word(keys, "layer_types", model.n_layers,
                                                                 "indexed_attention", "indexed_attention"));
  STEPCAST_ASSIGN(const std::vector<bool> shared, layers_without_indexer(keys, model.n_layers));
  if (std::ranges::count(shared, true) == 0) return Ok{};
  const std::int64_t dense = model.moe ? model.moe->first_dense_layers : model.n_layers;
  for (std::int64_t layer = 0; layer < model.n_layers; ++layer) {
    append_layer(model, {.feed_forward =
                             layer < dense ? LayerKind::FeedForward::dense : LayerKind::FeedForward::experts,
                         .shares_chosen_keys = shared[static_cast<std::size_t>(layer)]});
  }
  if (model.moe) model.moe->first_dense_layers = 0;
  return Ok{};
}

namespace {

// Which keys beside the window each layer attends to: by how many tokens a key stands for, or by words.
Status read_compressed_layers(ObjectReader& keys, std::int64_t window, Transformer& model) {
  constexpr std::int64_t kChosen = 4, kAll = 128;
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
    return keys.error(list == nullptr ? "" : key, fmt::format("`{}` does not say what each layer is", key))
        .expected(fmt::format("a list of {} layers, and of those that predict further tokens", n_layers));
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
    if (layer < n_layers) {
      append_layer(model, kind);
    } else if (const auto like = std::ranges::find(model.layer_kinds, kind);
               like != model.layer_kinds.end() && layer == n_layers) {
      model.kinds_of_further_layer = {static_cast<std::uint8_t>(like - model.layer_kinds.begin())};
    }
  }
  return Ok{};
}

}  // namespace

// Low-rank attention to a window and to compressed keys, experts in all layers, several residual streams.
Status read_deepseek_v4(ObjectReader& keys, Transformer& model) {
  model.ffn_hidden_size = 1;  // no layer is dense
  STEPCAST_TRY(require_kv_heads(keys));
  STEPCAST_TRY(read_llama_like(keys, model));
  STEPCAST_TRY(refuse_if_true(keys, "attention_bias", "biases of latent attention are not supported"));
  STEPCAST_TRY(refuse_if_true(keys, "mlp_bias", "biases of experts are not modelled here"));
  std::int64_t q_rank = 0, output_groups = 0, output_rank = 0;
  SparseIndexer index;
  MixtureOfExperts moe;
  std::int64_t rotated = 64, window = 128;
  model.residual_streams = 4;
  for (const auto& [key, size] : {std::pair{"q_lora_rank", &q_rank},
                                  {"o_groups", &output_groups},
                                  {"o_lora_rank", &output_rank},
                                  {"index_n_heads", &index.n_heads},
                                  {"index_head_dim", &index.head_dim},
                                  {"index_topk", &index.keys_per_query},
                                  {"n_routed_experts", &moe.n_experts},
                                  {"num_experts_per_tok", &moe.experts_per_token},
                                  {"moe_intermediate_size", &moe.expert_ffn_hidden_size}}) {
    STEPCAST_TRY(keys.required(key, *size));
  }
  for (const auto& [key, size] : {std::pair{"n_shared_experts", &moe.n_shared_experts},
                                  {"qk_rope_head_dim", &rotated},
                                  {"sliding_window", &window},
                                  {"hc_mult", &model.residual_streams},
                                  {"num_nextn_predict_layers", &model.n_multi_token_prediction_layers}}) {
    STEPCAST_TRY(keys.optional(key, *size));
  }
  if (model.n_kv_heads != 1 || model.head_dim == 0 || rotated > model.head_dim) {
    return keys.error("num_key_value_heads", "keys and values are one vector of all heads")
        .found(fmt::format("{} of width {}", model.n_kv_heads, model.head_dim))
        .expected("1, and a head_dim of at least qk_rope_head_dim");
  }
  model.rotary_fraction = static_cast<double>(rotated) / static_cast<double>(model.head_dim);
  if (moe.n_shared_experts > 0) moe.shared_ffn_hidden_size = moe.expert_ffn_hidden_size;
  model.moe = moe;
  model.attention = attention_named(
      "low_rank", {{"q_rank", q_rank}, {"output_rank", output_rank}, {"output_groups", output_groups}});
  model.sparse_indexer = index;
  // The first layers route by a table of tokens and hold the router all the same. The rest changes no shape.
  keys.ignore(
      "num_hash_layers mlp_layer_types hc_eps hc_sinkhorn_iters swiglu_limit compress_rope_theta "
      "expert_dtype");
  return read_compressed_layers(keys, window, model);
}

Status read_gpt_oss(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(require_kv_heads(keys));
  STEPCAST_TRY(read_llama_like(keys, model));
  bool attention_bias = true;
  STEPCAST_TRY(keys.optional("attention_bias", attention_bias));
  model.qkv_bias = model.attention_output_bias = attention_bias;
  model.ffn_bias = model.attention_sinks = true;
  MixtureOfExperts moe;
  STEPCAST_TRY(keys.required("num_local_experts", moe.n_experts));
  STEPCAST_TRY(keys.required("num_experts_per_tok", moe.experts_per_token));
  std::int64_t same = moe.experts_per_token;
  STEPCAST_TRY(keys.optional("experts_per_token", same));
  if (same != moe.experts_per_token) {
    return keys.wrong("experts_per_token", same, "num_experts_per_tok");
  }
  moe.expert_ffn_hidden_size = model.ffn_hidden_size;
  moe.router_bias = true;
  model.moe = moe;
  model.sliding_window_tokens = 128;
  model.global_attention_every_n_layers = 2;
  STEPCAST_TRY(keys.optional("sliding_window", model.sliding_window_tokens));
  STEPCAST_TRY(read_layer_types(keys, model));
  // Neither changes a shape: where gates saturate, and the length that training began with.
  double limit = 0;
  std::int64_t first_context = 0;
  STEPCAST_TRY(keys.optional("swiglu_limit", limit));
  return keys.optional("initial_context_length", first_context);
}

// The `text_config` of Llama 4 as a file of its own.
Status read_llama4_text(ObjectReader& keys, Transformer& model) {
  STEPCAST_TRY(require_kv_heads(keys));
  STEPCAST_TRY(read_llama_like(keys, model));
  bool attention_bias = false;
  STEPCAST_TRY(keys.optional("attention_bias", attention_bias));
  model.qkv_bias = model.attention_output_bias = attention_bias;
  MixtureOfExperts moe;
  moe.experts_per_token = 1;
  STEPCAST_TRY(keys.required("num_local_experts", moe.n_experts));
  STEPCAST_TRY(keys.optional("num_experts_per_tok", moe.experts_per_token));
  STEPCAST_TRY(keys.optional("interleave_moe_layer_step", moe.moe_every_n_layers));
  const JsonValue* list = keys.take("moe_layers");
  const auto with_experts = list == nullptr ? std::nullopt : list->numbers();
  const bool dense =
      moe.n_experts == 0 || moe.moe_every_n_layers == 0 || (with_experts && with_experts->empty());
  moe.expert_ffn_hidden_size = moe.shared_ffn_hidden_size = model.ffn_hidden_size;
  moe.n_shared_experts = 1;
  STEPCAST_TRY(keys.required("intermediate_size_mlp", model.ffn_hidden_size));
  for (std::size_t i = 0; !dense && with_experts && i < with_experts->size(); ++i) {
    const double usual = static_cast<double>(static_cast<std::int64_t>(i + 1) * moe.moe_every_n_layers - 1);
    if ((*with_experts)[i] == usual) continue;
    return keys.error("moe_layers", "experts in layers at irregular distances are not modelled")
        .found(fmt::format("layer {:g}", (*with_experts)[i]))
        .expected(fmt::format("{:g}, as interleave_moe_layer_step says", usual));
  }
  if (!dense) model.moe = moe;
  model.global_attention_every_n_layers = 4;
  STEPCAST_TRY(keys.optional("attention_chunk_size", model.sliding_window_tokens));
  // Norms of queries and keys without weights, scales of long texts, and which layers rotate: no shape.
  keys.ignore(
      "use_qk_norm attn_scale attn_temperature_tuning floor_scale for_llm_compressor no_rope_layers "
      "no_rope_layer_interval layer_types");
  return Ok{};
}

Status read_dbrx(ObjectReader& keys, Transformer& model) {
  model.norm_bias = model.qkv_bias = model.attention_output_bias = model.ffn_bias = false;
  model.gated_ffn = true;
  model.activation = Activation::silu;
  model.position = PositionEncoding::rotary;
  STEPCAST_TRY(keys.required("n_layers", model.n_layers));
  STEPCAST_TRY(keys.required("d_model", model.hidden_size));
  STEPCAST_TRY(keys.required("n_heads", model.n_heads));
  STEPCAST_TRY(keys.required("vocab_size", model.vocab_size));
  STEPCAST_TRY(keys.required("max_seq_len", model.max_position));
  model.tied_embeddings = false;
  STEPCAST_TRY(keys.optional("tie_word_embeddings", model.tied_embeddings));
  double dropout = 0;
  STEPCAST_TRY(keys.optional("resid_pdrop", dropout));
  model.hidden_dropout = dropout;
  STEPCAST_TRY(keys.optional("num_key_value_heads", model.n_kv_heads));  // said once more by transformers 5
  STEPCAST_ASSIGN(auto attention, keys.section("attn_config"));
  if (!attention) return keys.error("", "`attn_config` is missing").expected("an object with kv_n_heads");
  STEPCAST_TRY(attention->required("kv_n_heads", model.n_kv_heads));
  // Clipping and rotation change no shape, nor do losses and noise of the router.
  attention->ignore(huggingface_keys("harmless"));
  attention->ignore("clip_qkv attn_pdrop");
  STEPCAST_TRY(attention->finish());
  STEPCAST_ASSIGN(auto ffn, keys.section("ffn_config"));
  if (!ffn) return keys.error("", "`ffn_config` is missing").expected("an object with moe_num_experts");
  MixtureOfExperts moe;
  STEPCAST_TRY(ffn->required("ffn_hidden_size", model.ffn_hidden_size));
  STEPCAST_TRY(ffn->required("moe_num_experts", moe.n_experts));
  STEPCAST_TRY(ffn->required("moe_top_k", moe.experts_per_token));
  ffn->ignore(huggingface_keys("harmless"));
  ffn->ignore(
      "hidden_size ffn_act_fn moe_jitter_eps moe_loss_weight moe_normalize_expert_weights "
      "uniform_expert_assignment model_type");
  STEPCAST_TRY(ffn->finish());
  moe.expert_ffn_hidden_size = model.ffn_hidden_size;
  model.moe = moe;
  return Ok{};
}

}  // namespace stepcast::detail

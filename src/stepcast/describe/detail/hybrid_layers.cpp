#include "stepcast/describe/detail/hybrid_layers.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "stepcast/base/words.h"
#include "stepcast/describe/detail/moe_layer_pattern.h"

namespace stepcast::detail {
namespace {

constexpr std::int64_t kMostLetters = 100'000;

// Letters of layers with a state, among which shares of the others are spread evenly.
std::string spread_pattern(std::int64_t n_layers, double attention, double ffn) {
  std::string pattern;
  double attention_due = 0, ffn_due = 0;
  for (std::int64_t layer = 0; layer < std::min(n_layers, kMostLetters); ++layer) {
    attention_due += attention;
    ffn_due += ffn;
    double& due = attention_due >= ffn_due ? attention_due : ffn_due;
    const char letter = due < 1 ? 'M' : &due == &attention_due ? '*' : '-';
    if (letter != 'M') due -= 1;
    pattern += letter;
  }
  return pattern;
}

Error wrong_pattern(std::string_view found, std::string expected) {
  return Error::at("", "--hybrid-layer-pattern")
      .found(fmt::format("`{}`", found.substr(0, 60)))
      .expected(std::move(expected));
}

}  // namespace

std::optional<LayerKind> kind_of_letter(char letter) {
  using Feed = LayerKind::FeedForward;
  switch (letter) {
    case 'M': return LayerKind{.mixer = Mixer::mamba2, .feed_forward = Feed::none};
    case '*': return LayerKind{.mixer = Mixer::attention, .feed_forward = Feed::none};
    case 'E': return LayerKind{.mixer = Mixer::none, .feed_forward = Feed::experts};
    case '-': return LayerKind{.mixer = Mixer::none, .feed_forward = Feed::dense};
    default: return std::nullopt;
  }
}

void append_layer(Transformer& model, const LayerKind& kind) {
  const auto known = std::find(model.layer_kinds.begin(), model.layer_kinds.end(), kind);
  model.kind_of_layer.push_back(static_cast<std::uint8_t>(known - model.layer_kinds.begin()));
  if (known == model.layer_kinds.end()) model.layer_kinds.push_back(kind);
}

bool set_further_layers(Transformer& model, std::string_view letters) {
  for (const char letter : letters) {
    const std::optional<LayerKind> kind = kind_of_letter(letter);
    const auto known =
        kind ? std::find(model.layer_kinds.begin(), model.layer_kinds.end(), *kind) : model.layer_kinds.end();
    if (known == model.layer_kinds.end()) return false;
    model.kinds_of_further_layer.push_back(static_cast<std::uint8_t>(known - model.layer_kinds.begin()));
  }
  return true;
}

Status apply_hybrid_layers(const JobSettings& s, Transformer& model) {
  if (!s.hybrid_pattern && !s.hybrid.value_or(false)) return Ok{};
  const double attention = s.hybrid_attention_share.value_or(0), ffn = s.hybrid_ffn_share.value_or(0);
  if (!(attention >= 0 && ffn >= 0 && attention + ffn <= 1)) {
    return Error::at("", "--hybrid-attention-ratio")
        .found(fmt::format("{:g} and {:g} of --hybrid-mlp-ratio", attention, ffn))
        .expected("shares of the layers, at most 1 together");
  }
  const std::string pattern =
      s.hybrid_pattern ? *s.hybrid_pattern : spread_pattern(s.n_layers.value_or(0), attention, ffn);
  const std::size_t slash = std::min(pattern.find('/'), pattern.size());
  std::string letters = pattern.substr(0, slash);
  std::erase(letters, '|');
  const auto n_letters = static_cast<std::int64_t>(letters.size());
  if (n_letters == 0 || n_letters > kMostLetters) return wrong_pattern(pattern, "a letter for every layer");
  if (s.n_layers && *s.n_layers != n_letters) {
    return wrong_pattern(pattern,
                         fmt::format("the {} layers of --num-layers, not {}", *s.n_layers, n_letters));
  }
  model.n_layers = n_letters;
  model.layer_kinds.clear();
  model.kind_of_layer.clear();
  for (const char letter : letters) {
    const std::optional<LayerKind> kind = kind_of_letter(letter);
    if (!kind) {
      return Error::at("", "--hybrid-layer-pattern",
                       fmt::format("layers of the kind `{}` are not modelled", letter))
          .expected("M, *, - and E");
    }
    append_layer(model, *kind);
  }
  model.n_multi_token_prediction_layers =
      std::count(pattern.begin() + static_cast<std::ptrdiff_t>(slash), pattern.end(), '/');
  // "/*E/*E": what each layer that predicts a further token consists of.
  model.kinds_of_further_layer.clear();
  if (slash < pattern.size()) {
    const std::string further = pattern.substr(slash + 1, pattern.find('/', slash + 1) - slash - 1);
    if (!set_further_layers(model, further)) {
      return wrong_pattern(pattern, "behind `/` letters of layers that the model has in front of it");
    }
  }
  // Megatron's defaults where nothing is said.
  const std::int64_t head_dim = std::max<std::int64_t>(1, s.state_head_dim.value_or(64));
  constexpr std::int64_t kChunkTokens = 128;
  model.state_mixer = StateMixer{.n_heads = s.state_heads.value_or(2 * model.hidden_size / head_dim),
                                 .head_dim = head_dim,
                                 .n_key_heads = s.state_groups.value_or(8),
                                 .key_head_dim = s.state_size.value_or(128),
                                 .conv_bias = true,
                                 .chunk_tokens = kChunkTokens};
  return Ok{};
}

bool takes_chosen_keys(std::int64_t layer, std::int64_t every, std::int64_t offset) {
  return std::max<std::int64_t>(layer - offset + 1, 0) % std::max<std::int64_t>(1, every) != 0;
}

namespace {

// Which layers are linear: all but the last of every so many, or those of a list; all without either.
Result<std::vector<bool>> linear_layers(const JobSettings& s, std::int64_t n_layers) {
  constexpr std::string_view kFlag = "--linear-attention-freq";
  const std::string said = s.linear_attention_pattern.value_or("");
  if (said.find('[') != std::string::npos) return read_layer_list(kFlag, said, n_layers);
  std::vector<bool> linear(static_cast<std::size_t>(n_layers), true);
  if (said.empty()) return linear;
  std::size_t period = 0;
  const auto read = std::from_chars(said.data(), said.data() + said.size(), period);
  if (read.ec != std::errc{} || read.ptr != said.data() + said.size() || period < 1 ||
      period > kMostLetters) {
    return Error::at("", std::string{kFlag})
        .found(fmt::format("`{}`", said.substr(0, 60)))
        .expected("1 or more, or a list such as ([1]*3+[0]*1)*12 with 1 for linear attention");
  }
  for (std::size_t layer = period - 1; layer < linear.size(); layer += period) linear[layer] = false;
  return linear;
}

Status apply_indexer(const JobSettings& s, Transformer& model) {
  if (!model.latent_attention || !s.indexer_heads || !s.indexer_head_dim || !s.indexer_keys) {
    return Error::at("", "--experimental-attention-variant", "dsa needs more flags")
        .expected(
            "--multi-latent-attention, --dsa-indexer-n-heads, --dsa-indexer-head-dim and --dsa-indexer-topk");
  }
  model.sparse_indexer = SparseIndexer{*s.indexer_heads, *s.indexer_head_dim, *s.indexer_keys};
  return Ok{};
}

}  // namespace

Status apply_attention_variant(const JobSettings& s, Transformer& model) {
  if (!s.attention_variant) return Ok{};
  const bool sparse = *s.attention_variant == "dsa";
  if (!sparse && !is_among(*s.attention_variant, "gated_delta_net gdn")) {
    return Error::at("", "--experimental-attention-variant", "this one is not modelled")
        .found(fmt::format("`{}`", s.attention_variant->substr(0, 60)))
        .expected("gated_delta_net or dsa");
  }
  if (model.n_layers > kMostLetters) return Error::at("", "--num-layers").expected("fewer layers");
  std::vector<bool> linear(static_cast<std::size_t>(model.n_layers), false);
  if (sparse) {
    STEPCAST_TRY(apply_indexer(s, model));
    if (s.indexer_every.value_or(1) <= 1) return Ok{};
  } else {
    STEPCAST_ASSIGN(linear, linear_layers(s, model.n_layers));
    // Megatron's defaults where nothing is said.
    model.state_mixer = StateMixer{.n_heads = s.linear_heads.value_or(32),
                                   .head_dim = s.linear_head_dim.value_or(128),
                                   .n_key_heads = s.linear_key_heads.value_or(16),
                                   .key_head_dim = s.linear_key_head_dim.value_or(128),
                                   .conv_kernel = s.linear_kernel.value_or(4)};
  }
  const Transformer whole = model;
  model.layer_kinds.clear();
  model.kind_of_layer.clear();
  for (std::int64_t layer = 0; layer < model.n_layers; ++layer) {
    LayerKind kind{.feed_forward = whole.has_experts(layer) ? LayerKind::FeedForward::experts
                                                            : LayerKind::FeedForward::dense};
    if (linear[static_cast<std::size_t>(layer)]) {
      kind.mixer = Mixer::gated_delta;
    } else {
      kind.window_tokens = whole.window_tokens(layer);
      kind.attention_sinks = whole.attention_sinks;
      kind.shares_chosen_keys =
          sparse && takes_chosen_keys(layer, *s.indexer_every, s.indexer_offset.value_or(0));
    }
    append_layer(model, kind);
  }
  model.sliding_window_tokens = model.global_attention_every_n_layers = 0;
  if (model.moe) {
    model.moe->first_dense_layers = 0;
    model.moe->moe_every_n_layers = 1;
  }
  return Ok{};
}

std::vector<std::int64_t> layers_of_hybrid_stages(std::string_view pattern) {
  std::vector<std::int64_t> layers{0};
  for (const char letter : pattern.substr(0, pattern.find('/'))) {
    if (letter == '|') {
      layers.push_back(0);
    } else {
      ++layers.back();
    }
  }
  return layers;
}

}  // namespace stepcast::detail

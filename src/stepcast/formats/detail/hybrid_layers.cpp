// Models with different kinds of layers, described by letters, shares, periods or lists. Layers are stored as
// an index into a short list of distinct kinds.
#include "stepcast/formats/detail/hybrid_layers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/error_text.h"
#include "stepcast/base/scan.h"
#include "stepcast/base/words.h"
#include "stepcast/workload/modules/attention_module.h"

namespace stepcast::detail {

namespace {

// Limit of layers, to bound the work for hostile input.
constexpr std::int64_t kMostLetters = 100'000;

// A pattern with evenly spread attention (*) and FFN (-) layers among layers with a state (M), in the given shares.
std::string spread_pattern(std::int64_t n_layers, double attention, double ffn) {
  std::string pattern;
  // Each layer adds the shares; a letter is placed when a whole layer is due.
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

// Which layers have linear attention: all except every N-th, or those in a list with 1. Without a setting, all layers.
Result<std::vector<bool>> linear_layers(const JobSettings& s, std::int64_t n_layers) {
  constexpr std::string_view kFlag = "--linear-attention-freq";
  const std::string said = s.linear_attention_pattern.value_or("");
  if (said.find('[') != std::string::npos) return read_layer_list(kFlag, said, n_layers);
  std::vector<bool> linear(static_cast<std::size_t>(n_layers), true);
  if (said.empty()) return linear;
  const std::size_t period = scan<std::size_t>(said).value_or(0);
  if (period < 1 || period > kMostLetters) {
    return bad_value(kFlag, said,
                     "1 or more, or a list such as ([1]*3+[0]*1)*12 with 1 for linear attention");
  }
  for (std::size_t layer = period - 1; layer < linear.size(); layer += period) linear[layer] = false;
  return linear;
}

// The sparse-attention indexer ("dsa"). Errors: it is not given completely, or attention is not multi-head
// latent attention.
Status apply_indexer(const JobSettings& s, Transformer& model) {
  if (!attention_of(model).traits().indexes_every_layer || !s.indexer_heads || !s.indexer_head_dim ||
      !s.indexer_keys) {
    return Error::at("", "--experimental-attention-variant", "dsa needs more flags")
        .expected(
            "--multi-latent-attention, --dsa-indexer-n-heads, --dsa-indexer-head-dim and --dsa-indexer-topk");
  }
  model.sparse_indexer = SparseIndexer{*s.indexer_heads, *s.indexer_head_dim, *s.indexer_keys};
  return Ok{};
}

// Appends a term such as "[0,1]*3" to `pattern`, which may have up to `most` entries. False: the term is
// invalid or too long.
bool add_pattern_term(std::string_view term, std::vector<bool>& pattern, std::size_t most) {
  const std::size_t close = term.find(']');
  if (!term.starts_with('[') || close == std::string_view::npos) return false;
  // The list in brackets, which is then repeated.
  std::vector<bool> once;
  bool expects_digit = true;
  for (const char c : term.substr(1, close - 1)) {
    if (c == ' ') continue;
    if (expects_digit != (c == '0' || c == '1') || (!expects_digit && c != ',')) return false;
    if (expects_digit) once.push_back(c == '1');
    expects_digit = !expects_digit;
  }
  std::string_view rest = term.substr(close + 1);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  std::size_t times = 1;
  if (!rest.empty()) {
    if (!rest.starts_with('*')) return false;
    rest.remove_prefix(1);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    while (rest.ends_with(' ')) rest.remove_suffix(1);
    const auto said = scan<std::size_t>(rest);
    if (!said) return false;
    times = *said;
  }
  for (std::size_t i = 0; i < times && !once.empty(); ++i) {
    // Checked before appending, so that a large factor cannot exhaust memory.
    if (pattern.size() + once.size() > most) return false;
    pattern.insert(pattern.end(), once.begin(), once.end());
  }
  return true;
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
  // The pattern is given, or derived from the shares. Text after "/" describes multi-token prediction layers.
  const std::string pattern =
      s.hybrid_pattern ? *s.hybrid_pattern : spread_pattern(s.n_layers.value_or(0), attention, ffn);
  const std::size_t slash = std::min(pattern.find('/'), pattern.size());
  std::string letters = pattern.substr(0, slash);
  std::erase(letters, '|');
  const auto n_letters = static_cast<std::int64_t>(letters.size());
  if (n_letters == 0 || n_letters > kMostLetters)
    return bad_value("--hybrid-layer-pattern", pattern, "a letter for every layer");
  if (s.n_layers && *s.n_layers != n_letters) {
    return bad_value("--hybrid-layer-pattern", pattern,
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
  // "/*E/*E": the parts of each multi-token prediction layer. All have the same parts.
  model.kinds_of_further_layer.clear();
  if (slash < pattern.size()) {
    const std::string further = pattern.substr(slash + 1, pattern.find('/', slash + 1) - slash - 1);
    if (!set_further_layers(model, further)) {
      return bad_value("--hybrid-layer-pattern", pattern,
                       "after `/` only letters of layers that occur before it");
    }
  }
  // Defaults of Megatron-LM for sizes that are not given.
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
  // False in the first `offset` layers, because the left operand is then 0 and 0 % every is 0.
  return std::max<std::int64_t>(layer - offset + 1, 0) % std::max<std::int64_t>(1, every) != 0;
}

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
    // Every layer has an indexer, so all layers are equal.
    if (s.indexer_every.value_or(1) <= 1) return Ok{};
  } else {
    STEPCAST_ASSIGN(linear, linear_layers(s, model.n_layers));
    // Defaults of Megatron-LM for sizes that are not given.
    model.state_mixer = StateMixer{.n_heads = s.linear_heads.value_or(32),
                                   .head_dim = s.linear_head_dim.value_or(128),
                                   .n_key_heads = s.linear_key_heads.value_or(16),
                                   .key_head_dim = s.linear_key_head_dim.value_or(128),
                                   .conv_kernel = s.linear_kernel.value_or(4)};
  }
  // A copy, because append_layer() needs cleared lists while windows and experts are still read from the original fields.
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
  // These fields describe regular layers; the kinds replace them.
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

Result<std::vector<bool>> read_layer_list(std::string_view flag, std::string_view text,
                                          std::int64_t n_layers) {
  const std::string_view whole = text;
  while (text.starts_with('(') || text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(')') || text.ends_with(' ')) text.remove_suffix(1);
  std::vector<bool> pattern;
  const auto most = static_cast<std::size_t>(n_layers);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('+'), text.size());
    if (!add_pattern_term(text.substr(0, end), pattern, most)) {
      return bad_value(flag, whole,
                       fmt::format("a list of {} zeros and ones, such as [0]*3+[1]*58", n_layers));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  if (pattern.size() != most) {
    return bad_value(flag, whole,
                     fmt::format("an entry for each of {} layers, not {}", n_layers, pattern.size()));
  }
  return pattern;
}

Status read_moe_layer_pattern(std::string_view text, std::int64_t n_layers, MixtureOfExperts& moe) {
  constexpr std::string_view kFlag = "--moe-layer-freq";
  const std::string_view whole = text;
  if (text.empty()) return Ok{};
  if (text.find('[') == std::string_view::npos) {
    moe.moe_every_n_layers = scan<std::int64_t>(text).value_or(0);
    if (moe.moe_every_n_layers < 1) {
      return bad_value(kFlag, whole, "a whole number or a list such as [0]*3+[1]*58");
    }
    // Megatron-LM puts experts into the first of every n layers, stepcast into the last. The number is the
    // same if n divides the layers.
    if (n_layers % moe.moe_every_n_layers != 0) {
      return bad_value(kFlag, whole, fmt::format("a divisor of {} layers", n_layers));
    }
    return Ok{};
  }
  STEPCAST_ASSIGN(const std::vector<bool> pattern, read_layer_list(kFlag, text, n_layers));
  std::int64_t leading = 0;
  while (leading < n_layers && !pattern[static_cast<std::size_t>(leading)]) ++leading;
  // Two regular patterns are recognised: dense layers first and experts in all others, or experts in the last
  // of every n layers.
  for (const auto& [dense, every] :
       {std::pair{leading, std::int64_t{1}}, std::pair{std::int64_t{0}, leading + 1}}) {
    bool fits = true;
    for (std::int64_t layer = 0; layer < n_layers && fits; ++layer) {
      fits = pattern[static_cast<std::size_t>(layer)] == (layer >= dense && (layer - dense + 1) % every == 0);
    }
    if (!fits) continue;
    moe.first_dense_layers = dense;
    moe.moe_every_n_layers = every;
    return Ok{};
  }
  return bad_value(kFlag, whole,
                   "dense layers before layers with experts, or experts in the last of every n layers");
}

}  // namespace stepcast::detail

#include "stepcast/describe/detail/hybrid_layers.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

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

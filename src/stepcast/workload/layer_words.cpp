#include "stepcast/workload/layer_words.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/scan.h"

namespace stepcast {
namespace {

// A word and the flag that it sets.
template <class Set>
struct Word {
  std::string_view word;
  bool Set::*member;
};

// Sets the flags of all words in `text`. Error: an unknown word, described as `what`.
template <class Set>
Status set_words(std::string_view text, std::span<const Word<Set>> known, std::string_view what, Set& out) {
  constexpr std::string_view kBetween = " +,";
  std::size_t at = 0;
  while ((at = text.find_first_not_of(kBetween, at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const auto found = std::ranges::find_if(known, [&](const Word<Set>& k) { return k.word == word; });
    if (found == known.end()) {
      std::string words;
      for (const Word<Set>& k : known) words += fmt::format("{}{}", words.empty() ? "" : ", ", k.word);
      return Error::at("", std::string{what}).found(fmt::format("`{}`", word.substr(0, 60))).expected(words);
    }
    out.*found->member = true;
    at = end;
  }
  return Ok{};
}

// Recursive-descent parser of a layout string.
class StageReader {
 public:
  explicit StageReader(std::string_view text) : text_(text) {}

  Result<std::vector<std::int64_t>> read() {
    if (!text_.empty() && text_.find_first_not_of("0123456789,") == std::string_view::npos) return numbers();
    std::string letters;
    STEPCAST_TRY(sequence(letters, 0));
    if (at_ < text_.size()) return wrong("a closing bracket without an opening one");
    std::vector<std::int64_t> stages(1, 0);
    for (const char c : letters)
      if (c == '|')
        stages.push_back(0);
      else if (c == 't')
        ++stages.back();
    return stages;
  }

 private:
  static constexpr std::size_t kMost = 100'000;  // letters
  static constexpr int kDeepest = 8;             // nesting of brackets

  // An error that quotes the text.
  [[nodiscard]] Error wrong(std::string problem) const {
    return Error::at("", "the pipeline layout", std::move(problem))
        .found(fmt::format("`{}`", text_.substr(0, 80)))
        .expected("E, t, m, L and |, with (...) and *N to repeat; or layers such as 7,8,8,7");
  }

  // "7,8,8,7": layers per stage.
  Result<std::vector<std::int64_t>> numbers() {
    std::vector<std::int64_t> stages;
    while (at_ <= text_.size()) {
      const std::size_t comma = std::min(text_.find(',', at_), text_.size());
      const auto n = scan<std::int64_t>(text_.substr(at_, comma - at_));
      if (!n || stages.size() >= kMost) return wrong("no number between commas");
      stages.push_back(*n);
      at_ = comma + 1;
    }
    return stages;
  }

  // NOLINTNEXTLINE(misc-no-recursion): the depth is that of the brackets, at most kDeepest.
  Status sequence(std::string& out, int depth) {
    if (depth > kDeepest) return wrong("brackets too deep");
    while (at_ < text_.size() && text_[at_] != ')') {
      const char c = text_[at_++];
      std::string unit;
      if (c == ',' || c == ' ') continue;
      if (c == '(') {
        STEPCAST_TRY(sequence(unit, depth + 1));
        if (at_ >= text_.size()) return wrong("an opening bracket without a closing one");
        ++at_;
      } else if (std::string_view{"EtmL|"}.find(c) != std::string_view::npos) {
        unit = c;
      } else {
        return wrong(fmt::format("an unknown letter: `{}`", c >= ' ' && c <= '~' ? c : '?'));
      }
      std::size_t times = 1;
      if (at_ < text_.size() && text_[at_] == '*') {
        std::string_view rest = text_.substr(at_ + 1);
        times = scan_front<std::size_t>(rest).value_or(kMost + 1);
        if (times > kMost) return wrong("no number behind `*`");
        at_ = text_.size() - rest.size();
      }
      if (out.size() + unit.size() * times > kMost) return wrong("too long");
      for (std::size_t i = 0; i < times; ++i) out += unit;
    }
    return Ok{};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<RecomputedModules> parse_recomputed_modules(std::string_view words) {
  using M = RecomputedModules;
  static constexpr Word<M> kWords[] = {
      {"core_attn", &M::core_attention},       {"layernorm", &M::norms}, {"mlp", &M::ffn},
      {"mla_up_proj", &M::latent_projections}, {"moe", &M::experts},     {"moe_act", &M::expert_activation},
      {"shared_experts", &M::shared_experts}};
  M modules;
  modules.core_attention = false;
  STEPCAST_TRY(set_words<M>(words, kWords, "a module to recompute", modules));
  return modules;
}

Result<OffloadedModules> parse_offloaded_modules(std::string_view words) {
  using M = OffloadedModules;
  static constexpr Word<M> kWords[] = {
      {"attn_norm", &M::attention_norm},       {"qkv_linear", &M::qkv},    {"core_attn", &M::core_attention},
      {"attn_proj", &M::attention_projection}, {"mlp_norm", &M::ffn_norm}, {"expert_fc1", &M::expert_inputs},
      {"moe_act", &M::expert_activation}};
  M modules;
  STEPCAST_TRY(set_words<M>(words, kWords, "--offload-modules", modules));
  return modules;
}

Result<LayerResults> parse_layer_results(std::string_view words) {
  using R = LayerResults;
  static constexpr Word<R> kWords[] = {
      {"input", &R::input},         {"qkv", &R::qkv},
      {"attention", &R::attention}, {"attention_output", &R::attention_output},
      {"ffn_up", &R::ffn_up},       {"ffn_down", &R::ffn_down}};
  R results;
  STEPCAST_TRY(set_words<R>(words, kWords, "a result of a layer", results));
  return results;
}

Result<CudaGraphs> parse_cuda_graphs(std::string_view implementation, std::string_view scope) {
  static constexpr std::string_view kImplementations[] = {"none", "local", "transformer_engine",
                                                          "full_iteration"};
  const bool is_known = std::find(std::begin(kImplementations), std::end(kImplementations), implementation) !=
                        std::end(kImplementations);
  if (!implementation.empty() && !is_known) {
    return Error::at("", "CUDA graphs")
        .found(fmt::format("`{}`", implementation.substr(0, 60)))
        .expected("none, local, transformer_engine or full_iteration");
  }
  if (implementation == "none" || scope == "none") return CudaGraphs{};
  if (implementation == "full_iteration") scope = implementation;
  if (scope.empty() || scope == "full" || scope == "per_layer") return graphs_of_layers();
  using G = CudaGraphs;
  static constexpr Word<G> kWords[] = {{"attn", &G::attention},    {"mlp", &G::ffn},
                                       {"moe_router", &G::router}, {"moe_preprocess", &G::expert_dispatch},
                                       {"moe", &G::experts},       {"full_iteration", &G::full_iteration},
                                       {"mamba", &G::attention}};  // the mixer of a layer, of any kind
  G graphs;
  STEPCAST_TRY(set_words<G>(scope, kWords, "a scope of CUDA graphs", graphs));
  return graphs;
}

Result<Adapters> parse_adapter_targets(std::string_view words) {
  using A = Adapters;
  static constexpr Word<A> kWords[] = {{"linear_qkv", &A::qkv},
                                       {"linear_proj", &A::attention_output},
                                       {"linear_fc1", &A::ffn_up},
                                       {"linear_fc2", &A::ffn_down}};
  A adapters;
  adapters.qkv = adapters.attention_output = false;
  STEPCAST_TRY(set_words<A>(words, kWords, "a linear layer with an adapter", adapters));
  return adapters;
}

Result<FrozenWeights> parse_frozen_weights(std::string_view word) {
  for (const FrozenWeights kind :
       {FrozenWeights::as_computed, FrozenWeights::int8, FrozenWeights::nf4, FrozenWeights::nf4_double})
    if (word == to_string(kind)) return kind;
  return Error::at("", "--lora-base-weights")
      .found(fmt::format("`{}`", word.substr(0, 60)))
      .expected("16bit, int8, nf4 or nf4-double");
}

Result<std::vector<std::int64_t>> parse_pipeline_layout(std::string_view text) {
  return StageReader{text}.read();
}

}  // namespace stepcast

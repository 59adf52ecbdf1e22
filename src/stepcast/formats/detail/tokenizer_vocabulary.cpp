// Vocabulary sizes of tokenizers, from the type, the name of the model, or the file name, because the
// tokenizer files are not available.
#include "stepcast/formats/detail/tokenizer_vocabulary.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/scan.h"
#include "stepcast/base/text.h"
#include "stepcast/formats/presets.h"

namespace stepcast::detail {
namespace {

// A tokenizer type of Megatron-LM with its usual number of words.
struct TokenizerType {
  std::string_view type;
  std::int64_t words;
  std::string_view whose;
  bool sure;  // false: tokenizers of this type have different vocabularies
};
// Sizes as published with the tokenizers. For types without a fixed vocabulary, a common one. The last row is
// the default.
constexpr TokenizerType kTokenizerTypes[] = {{"GPT2BPETokenizer", 50257, "GPT-2's", true},
                                             {"BertWordPieceLowerCase", 30522, "BERT's", true},
                                             {"BertWordPieceCase", 28996, "BERT's", true},
                                             {"Llama2Tokenizer", 32000, "Llama 2's", true},
                                             {"Llama3Tokenizer", 128256, "Llama 3's", true},
                                             {"MistralTokenizer", 32768, "Mistral's", true},
                                             {"TikTokenizer", 131072, "Megatron's limit for tiktoken", true},
                                             {"SentencePieceTokenizer", 32000, "Llama 2's", false},
                                             {"GPTSentencePieceTokenizer", 256000, "Nemotron's", false},
                                             {"HuggingFaceTokenizer", 128256, "Llama 3's", false},
                                             {"", 50257, "GPT-2's", false}};

// A number of thousands in a file name: "nemotron_2_256k.model" gives 256,000. Nothing outside 8k to 1000k.
std::optional<std::int64_t> thousands_in(std::string_view name) {
  for (std::size_t at = 0; at < name.size(); ++at) {
    std::string_view rest = name.substr(at);
    const auto said = scan_front<std::int64_t>(rest);
    if (!said) continue;
    const std::int64_t thousands = *said;
    const std::size_t end = name.size() - rest.size();
    const bool is_k = end < name.size() && (name[end] == 'k' || name[end] == 'K');
    constexpr std::int64_t kFewest = 8, kMost = 1000;
    if (is_k && thousands >= kFewest && thousands <= kMost) return thousands * 1000;
    at = end;
  }
  return std::nullopt;
}

// The vocabulary of a preset that a path names: "unsloth/Llama-3.1-8B-Instruct". Tries the parts of the path
// from the last to the first, each also without its endings after hyphens.
std::optional<TokenizerVocabulary> vocabulary_of_preset(std::string_view path) {
  while (!path.empty()) {
    const std::size_t slash = path.rfind('/');
    std::string_view part = path.substr(slash + 1);  // npos + 1 is 0
    const std::string hub = preset_of_hub_name(part).value_or(std::string{part});
    part = hub;
    while (!part.empty()) {
      if (const Result<Transformer> preset = find_preset(part); preset.ok() && preset->vocab_size > 0)
        return TokenizerVocabulary{preset->vocab_size, fmt::format("that of {}", preset->name), false};
      part = part.substr(0, part.find_last_of("-_") == std::string_view::npos ? 0 : part.find_last_of("-_"));
    }
    path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
  return std::nullopt;
}

}  // namespace

// Order: types with a fixed vocabulary, presets, numbers in file names, the default of the type.
TokenizerVocabulary vocabulary_of_tokenizer(std::string_view type, std::string_view model) {
  const auto* known = std::find_if(std::begin(kTokenizerTypes), std::end(kTokenizerTypes),
                                   [&](const TokenizerType& row) { return row.type == type; });
  const bool is_known = known != std::end(kTokenizerTypes);
  if (is_known && known->sure) return TokenizerVocabulary{known->words, std::string{known->whose}, true};
  if (auto preset = vocabulary_of_preset(model)) return *std::move(preset);
  if (const auto words = thousands_in(model.substr(model.rfind('/') + 1)))
    return TokenizerVocabulary{*words, "by the name of its file", false};
  if (!is_known) known = std::end(kTokenizerTypes) - 1;
  return TokenizerVocabulary{known->words, std::string{known->whose}, false};
}

std::string vocabulary_note(const JobSettings& settings, const Transformer& model) {
  if (settings.vocab_size.value_or(0) > 0 || settings.padded_vocab_size.value_or(0) > 0) return {};
  const TokenizerVocabulary known =
      vocabulary_of_tokenizer(settings.tokenizer.value_or(""), settings.tokenizer_model.value_or(""));
  if (known.sure) return {};
  const ParameterCount all = parameter_count(model);
  // Share of the output layer in the GEMM work per token: only selected experts count.
  const double visited = model.moe ? static_cast<double>(model.moe->experts_per_token) /
                                         static_cast<double>(std::max<std::int64_t>(1, model.moe->n_experts))
                                   : 0;
  const double layers = static_cast<double>(all.attention + all.ffn + all.router + all.shared_experts) +
                        visited * static_cast<double>(all.routed_experts);
  const double output = static_cast<double>(model.vocab_size) * static_cast<double>(model.hidden_size);
  return fmt::format(
      "the vocabulary is in the tokenizer's file: {} words are assumed ({}), {:.0f} % of the GEMM FLOPs of a "
      "step. To change it: --vocab-size",
      model.vocab_size, known.whose, 100 * output / std::max(1.0, layers + output));
}

}  // namespace stepcast::detail

// Guesses the vocabulary size of a tokenizer without its file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stepcast/describe/job.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

// A vocabulary size and its source.
struct TokenizerVocabulary {
  std::int64_t words = 0;
  std::string whose;  // "GPT-2's", "that of qwen3-8b"
  bool sure = false;  // the tokenizer type has no other size
};

// `type` as in --tokenizer-type; `model` as in --tokenizer-model: the name of a model, or a file with a size
// in its name ("nemotron_2_256k.model").
[[nodiscard]] TokenizerVocabulary vocabulary_of_tokenizer(std::string_view type, std::string_view model);

// A note about an assumed vocabulary and its share of the work in `model`, for command lines without a
// vocabulary. Empty if the vocabulary is given, or the tokenizer type has only one size.
[[nodiscard]] std::string vocabulary_note(const JobSettings& settings, const Transformer& model);

}  // namespace stepcast::detail

// How many words a tokenizer has whose file nobody reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stepcast/describe/job.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

struct TokenizerVocabulary {
  std::int64_t words = 0;
  std::string whose;  // "GPT-2's", "that of qwen3-8b"
  bool sure = false;  // the tokenizer has no other
};

// `type` as in --tokenizer-type, `model` as in --tokenizer-model: a name of a model, or a file whose name tells
// ("nemotron_2_256k.model").
[[nodiscard]] TokenizerVocabulary vocabulary_of_tokenizer(std::string_view type, std::string_view model);

// Of a command line that states no vocabulary: what was taken, and what it weighs in a step of `model`, which has it.
// Empty where the tokenizer leaves no doubt, and where the vocabulary is stated.
[[nodiscard]] std::string vocabulary_note(const JobSettings& settings, const Transformer& model);

}  // namespace stepcast::detail

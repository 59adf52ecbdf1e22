// Keys of Hugging Face's config.json: lists of them, and what readers of families share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

// Words of a row of tables/huggingface_keys.csv: "harmless" are keys that say nothing about shape, time or memory of training.
[[nodiscard]] std::string_view huggingface_keys(std::string_view list);

// A config with its language model as `text_config`, whatever that is called, and, of families that rows describe, with
// sizes under their usual names (huggingface_keys.cpp). What is left out goes into `notes`.
[[nodiscard]] JsonValue with_usual_keys(const JsonValue& config, std::vector<std::string>& notes);

// Keys that nobody took (huggingface_keys.cpp): an error where one may shape the model, by its name and value; the
// others go into `notes`, or say nothing.
[[nodiscard]] Status finish_with_unknown_keys(ObjectReader& keys, std::vector<std::string>& notes);

// Shared (huggingface_families.cpp).
[[nodiscard]] Status read_activation(ObjectReader& keys, std::string_view key, Activation& out);
// Features that no Transformer has: refused unless they are off.
[[nodiscard]] Status refuse_if_true(ObjectReader& keys, std::string_view key, std::string_view why);
[[nodiscard]] Status refuse_if_false(ObjectReader& keys, std::string_view key, std::string_view why);

}  // namespace stepcast::detail

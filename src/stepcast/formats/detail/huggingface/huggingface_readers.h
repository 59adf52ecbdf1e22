// Reads keys of Hugging Face's config.json: lists of keys, and functions that the readers of families share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

// The keys of a list in tables/huggingface_keys.csv, separated by blanks. "harmless": keys without effect on
// shape, time or memory of training.
[[nodiscard]] std::string_view huggingface_keys(std::string_view list);

// The config with its language model as `text_config`, and, for families with a row, all sizes under their
// usual names (huggingface_keys.cpp). Parts that are left out are mentioned in `notes`.
[[nodiscard]] JsonValue with_usual_keys(const JsonValue& config, std::vector<std::string>& notes);

// Handles keys that no reader read (huggingface_keys.cpp). Errors: a key that may change the model's shape,
// judged by its name and value. Other keys are mentioned in `notes` or ignored.
[[nodiscard]] Status finish_with_unknown_keys(ObjectReader& keys, std::vector<std::string>& notes);

// Reads the name of an activation function. Errors: an unknown one.
[[nodiscard]] Status read_activation(ObjectReader& keys, std::string_view key, Activation& out);
// Reject a feature that is not modelled, if its switch is on (or off).
[[nodiscard]] Status refuse_if_true(ObjectReader& keys, std::string_view key, std::string_view why);
[[nodiscard]] Status refuse_if_false(ObjectReader& keys, std::string_view key, std::string_view why);

}  // namespace stepcast::detail

// What a sweep may set: the words of `predict` and `plan`, and every flag of Megatron-LM.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/sweep/option_table.h"
#include "stepcast/sweep/sweep_spec.h"

namespace stepcast {

// The questions that points of a mode ask: their options are its keys.
[[nodiscard]] QuestionSet questions_of(SweepMode mode);

// "--Tensor-model-parallel-size" -> "tensor_model_parallel_size"; the long names of degrees and batches become the short
// ones: "tp".
[[nodiscard]] std::string sweep_key(std::string_view spelled);
[[nodiscard]] bool is_sweep_key(std::string_view key, SweepMode mode);
// For a key that is none: "did you mean ...?", or where the list of keys stands.
[[nodiscard]] std::string advice_for_key(std::string_view key, SweepMode mode);
// Whether its value may name a file.
[[nodiscard]] bool names_file(std::string_view key);

// What a value of this key has to be where `value` is of another kind, as "a whole number from 1 on"; empty: it will do, or
// only the point as a whole can tell.
[[nodiscard]] std::string_view expected_instead(std::string_view key, const JsonValue& value);

// "8k" and "15T" as numbers where the key is one of a number; other values as they are.
[[nodiscard]] JsonValue spelled_out(std::string_view key, const JsonValue& value);

// Keys that are no flags of Megatron-LM.
[[nodiscard]] std::vector<std::string> own_sweep_keys(SweepMode mode);
// The flag that a key stands for: "--tensor-model-parallel-size".
[[nodiscard]] std::string flag_of_key(std::string_view key);

}  // namespace stepcast

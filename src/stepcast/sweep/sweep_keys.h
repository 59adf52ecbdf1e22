// The keys of a sweep spec: the options of `predict` and `plan` (option_table.h) and every flag of
// Megatron-LM.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/sweep/option_table.h"
#include "stepcast/sweep/sweep_spec.h"

namespace stepcast {

// The questions that points of a mode can ask. Options of these questions are the keys of that mode.
[[nodiscard]] QuestionSet questions_of(SweepMode mode);

// The canonical key of a flag or key: leading dashes removed, lower case, dashes as underscores. Long names
// of Megatron-LM become our short ones: "--Tensor-model-parallel-size" -> "tp".
[[nodiscard]] std::string sweep_key(std::string_view spelled);
// Whether `key` (canonical) is an option of this mode or a flag of Megatron-LM.
[[nodiscard]] bool is_sweep_key(std::string_view key, SweepMode mode);
// The advice for an unknown key: the mode it belongs to, "did you mean ...?", or the list of known keys.
[[nodiscard]] std::string advice_for_key(std::string_view key, SweepMode mode);
// Whether the value of this key may be the name of a file.
[[nodiscard]] bool names_file(std::string_view key);

// What the key requires, as "a whole number from 1 on", if `value` does not meet it. Empty if the value is
// allowed or if only the complete point can be checked.
[[nodiscard]] std::string_view expected_instead(std::string_view key, const JsonValue& value);

// Numbers with a suffix ("8k", "15T") as JSON numbers, if the key takes a number. Other values unchanged.
[[nodiscard]] JsonValue spelled_out(std::string_view key, const JsonValue& value);

// The keys of this mode that come from our options, without those of Megatron-LM.
[[nodiscard]] std::vector<std::string> own_sweep_keys(SweepMode mode);
// The flag of a key, Megatron-LM's name if it has one: "tp" -> "--tensor-model-parallel-size".
[[nodiscard]] std::string flag_of_key(std::string_view key);

}  // namespace stepcast

// What tables say of models: members of a Transformer by their names.
//
//   {"norm": "rms_norm", "qk_norm": true, "moe": {"n_experts": 8, "experts_per_token": 2}}
#pragma once

#include <string_view>

#include "stepcast/base/object_reader.h"
#include "stepcast/base/result.h"
#include "stepcast/workload/transformer.h"

namespace stepcast::detail {

// Into `model`, which keeps what is not said. Keys of other things are left for the caller's finish().
[[nodiscard]] Status read_features(ObjectReader& keys, Transformer& model);

// One of the words that values up to `Last` are called by; `out` stays as it is without the key.
template <auto Last>
[[nodiscard]] Status read_word(ObjectReader& keys, std::string_view key, decltype(Last)& out) {
  std::string word{to_string(out)};
  STEPCAST_TRY(keys.optional(key, word));
  for (int i = 0; i <= static_cast<int>(Last); ++i) {
    if (to_string(static_cast<decltype(Last)>(i)) != word) continue;
    out = static_cast<decltype(Last)>(i);
    return Ok{};
  }
  return keys.error(key, "unknown word").found(word);
}

}  // namespace stepcast::detail

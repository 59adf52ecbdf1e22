// Reads latent attention (MLA) and the layers in which an indexer selects keys.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stepcast/formats/detail/huggingface/huggingface_readers.h"
#include "stepcast/formats/detail/huggingface/huggingface_rows.h"
#include "stepcast/formats/detail/hybrid_layers.h"
#include "stepcast/workload/modules/attention_module.h"

namespace stepcast::detail {
namespace {

// "indexer_types": for each layer "full" (it has an indexer) or "shared" (it reuses the keys of an earlier
// layer). Returns true for shared layers.
Result<std::vector<bool>> read_indexer_types(ObjectReader& keys, std::int64_t n_layers) {
  const JsonValue& list = *keys.take("indexer_types");
  if (!list.is_array() || static_cast<std::int64_t>(list.items().size()) != n_layers)
    return keys.error("indexer_types").found(describe_value(list)).expected("a word for each layer");
  std::vector<bool> shared;
  for (const JsonValue& item : list.items()) {
    shared.push_back(item.is_text() && item.text() == "shared");
    if (shared.back() || (item.is_text() && item.text() == "full")) continue;
    return keys
        .error("indexer_types", fmt::format("layer {} is of a kind that is not modelled", shared.size() - 1))
        .found(describe_value(item))
        .expected("`full` or `shared`");
  }
  return shared;
}

}  // namespace

// The sizes of the kind of attention that `kind` names, under the keys that its traits list.
Status read_attention_sizes(ObjectReader& keys, std::string_view kind, Transformer& model) {
  model.attention = attention_named(kind, {});
  const auto sizes = model.attention.module->traits().sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::int64_t& value = model.attention.sizes[i];
    STEPCAST_TRY(sizes[i].required ? keys.required(sizes[i].key, value) : keys.optional(sizes[i].key, value));
  }
  return Ok{};
}

Status read_latents(ObjectReader& keys, Transformer& model) {
  // The width of a head follows from the latent sizes; head_dim in the file is the rotated part.
  model.n_kv_heads = model.head_dim = 0;
  STEPCAST_TRY(refuse_if_false(keys, "use_mla", "this family is not supported without latent attention"));
  STEPCAST_TRY(refuse_if_true(keys, "attention_bias", "biases of latent attention are not supported"));
  STEPCAST_TRY(refuse_if_true(keys, "mlp_bias", "biases of experts are not modelled here"));
  STEPCAST_TRY(read_attention_sizes(keys, "latent", model));
  std::int64_t qk_head_dim = model.qk_head_dim();
  STEPCAST_TRY(keys.optional("qk_head_dim", qk_head_dim));
  if (qk_head_dim != model.qk_head_dim())
    return keys.wrong("qk_head_dim", qk_head_dim, "qk_nope_head_dim + qk_rope_head_dim");
  return keys.optional("num_nextn_predict_layers", model.n_multi_token_prediction_layers);
}

// Three ways to give it, in order of precedence: indexer_types, a pattern of letters ('S' is shared), a
// frequency with an offset.
Result<std::vector<bool>> layers_without_indexer(ObjectReader& keys, std::int64_t n_layers) {
  std::string letters;
  std::int64_t every = 1, offset = 2;
  if (const JsonValue* pattern = keys.take("index_topk_pattern"); pattern != nullptr && pattern->is_text())
    letters = pattern->text();
  STEPCAST_TRY(keys.optional("index_topk_freq", every));
  STEPCAST_TRY(keys.optional("index_skip_topk_offset", offset));
  if (keys.has("indexer_types")) return read_indexer_types(keys, n_layers);
  if (!letters.empty() && static_cast<std::int64_t>(letters.size()) != n_layers)
    return keys.error("index_topk_pattern").found(letters.substr(0, 60)).expected("a letter for each layer");
  std::vector<bool> without;
  constexpr std::int64_t kMostLayers = 1'000'000;
  for (std::int64_t layer = 0; layer < std::min(n_layers, kMostLayers); ++layer) {
    without.push_back(letters.empty() ? takes_chosen_keys(layer, every, offset)
                                      : letters[static_cast<std::size_t>(layer)] == 'S');
  }
  return without;
}

}  // namespace stepcast::detail

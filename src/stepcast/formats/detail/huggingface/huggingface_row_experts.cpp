// Reads mixture-of-experts sizes and which layers have experts. Families use many names for the same sizes,
// so the names are lists.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/base/scan.h"
#include "stepcast/base/words.h"
#include "stepcast/formats/detail/huggingface/huggingface_rows.h"

namespace stepcast::detail {
namespace {

// Names for the same size, separated by blanks. The first one that is present is read; the others are
// repetitions and are ignored.
constexpr std::string_view kExpertCounts = "n_routed_experts moe_num_experts num_experts num_local_experts";
constexpr std::string_view kPerToken = "num_experts_per_tok moe_top_k moe_topk moe_k top_k_experts";
constexpr std::string_view kWidths = "moe_intermediate_size expert_ffn_hidden_size";
constexpr std::string_view kSharedCounts =
    "n_shared_experts num_shared_experts moe_num_shared_experts num_shared_expert";
constexpr std::string_view kSharedWidths =
    "shared_expert_intermediate_size share_expert_dim moe_shared_expert_intermediate_size "
    "shared_intermediate_size";
constexpr std::string_view kDenseInFront = "first_k_dense_replace num_dense_layers moe_layer_start_index";

// The first of these keys that is present; empty if none is. All of them count as read.
std::string_view first_of(ObjectReader& keys, std::string_view names) {
  std::string_view first;
  (void)any_word(names, [&](std::string_view name) {
    if (keys.has(name)) first = name;
    return !first.empty();
  });
  keys.ignore(names);
  return first;
}

// Lists of layers: "moe_layers_enum" names those with experts as "3,4,5" (Step 3.5), "mlp_only_layers" those
// without (Qwen).
Status read_listed_layers(ObjectReader& keys, std::vector<bool>& has) {
  std::string enumerated;
  if (keys.has("moe_layers_enum")) {
    STEPCAST_TRY(keys.optional("moe_layers_enum", enumerated));
    has.assign(has.size(), false);
    for (std::size_t at = 0; at < enumerated.size();) {
      const std::size_t end = std::min(enumerated.find(',', at), enumerated.size());
      const auto layer = scan<std::size_t>(std::string_view{enumerated}.substr(at, end - at));
      if (layer.value_or(has.size()) >= has.size())
        return keys.error("moe_layers_enum").expected("numbers of layers with commas");
      has[*layer] = true;
      at = end + 1;
    }
  }
  const JsonValue* dense = keys.take("mlp_only_layers");
  if (dense == nullptr || dense->is_null()) return Ok{};
  const auto layers = dense->numbers();
  if (!layers)
    return keys.error("mlp_only_layers").found(describe_value(*dense)).expected("a list of numbers");
  for (const double layer : *layers)
    if (layer >= 0 && layer < static_cast<double>(has.size())) has[static_cast<std::size_t>(layer)] = false;
  return Ok{};
}

}  // namespace

// No experts are added if the config has none, if they are switched off, or if there is only one and the family is Jamba.
Status read_expert_sizes(ObjectReader& keys, const ExpertKeys& names, Transformer& model) {
  bool on = true;
  if (!names.switch_key.empty()) STEPCAST_TRY(keys.optional(names.switch_key, on));
  const std::string_view count = first_of(keys, kExpertCounts), per_token = first_of(keys, kPerToken),
                         width = first_of(keys, kWidths), n_shared = first_of(keys, kSharedCounts),
                         shared_width = first_of(keys, kSharedWidths);
  const bool sized = names.complete && !(per_token.empty() && width.empty());
  if ((count.empty() && !model.moe && !sized) || !on) return Ok{};
  MixtureOfExperts moe = std::exchange(model.moe, std::nullopt).value_or(MixtureOfExperts{});
  // A size of the family is the default; without one, the key is required.
  const auto required = [&](std::string_view key, std::string_view usual, std::int64_t& out) {
    return out > 0 ? optional_size(keys, key, out) : keys.required(key.empty() ? usual : key, out);
  };
  STEPCAST_TRY(required(count, "num_experts", moe.n_experts));
  if (moe.n_experts == 0 && names.complete) return keys.wrong(count, 0, "1 or more");
  if (moe.n_experts == 0) return optional_size(keys, shared_width, model.ffn_hidden_size);
  if (moe.n_experts == 1 && keys.has("expert_layer_period")) return Ok{};  // Jamba without experts
  STEPCAST_TRY(required(per_token, "num_experts_per_tok", moe.experts_per_token));
  STEPCAST_TRY(required(names.width.empty() ? width : names.width, "moe_intermediate_size",
                        moe.expert_ffn_hidden_size));
  STEPCAST_TRY(optional_size(keys, n_shared, moe.n_shared_experts));
  STEPCAST_TRY(optional_size(keys, shared_width, moe.shared_ffn_hidden_size));
  STEPCAST_TRY(optional_size(keys, names.latent_size, moe.latent_size));
  STEPCAST_TRY(keys.optional("n_group", moe.n_groups));
  moe.groups_per_token = moe.n_groups = std::max<std::int64_t>(1, moe.n_groups);
  STEPCAST_TRY(keys.optional("topk_group", moe.groups_per_token));
  // DeepSeek-V2-Lite has groups in its config that its "greedy" routing does not use.
  const JsonValue* method = keys.take("topk_method");
  if (method != nullptr && method->is_text() && method->text() == "greedy")
    moe.n_groups = moe.groups_per_token = 1;
  // Shared experts: the dense FFN as one (Gemma 4), one without a count, or a count and a width.
  if (names.dense_beside) {
    model.norms_per_layer = 7;
    moe.n_shared_experts = 1;
    moe.shared_ffn_hidden_size = model.ffn_hidden_size;
  } else if (names.one_shared) {
    moe.n_shared_experts = 1;
    moe.shared_ffn_hidden_size = moe.expert_ffn_hidden_size;
    STEPCAST_TRY(optional_size(keys, names.one_shared_width, moe.shared_ffn_hidden_size));
  } else if (n_shared.empty()) {
    moe.n_shared_experts = moe.shared_ffn_hidden_size > 0 ? 1 : 0;
  } else if (moe.n_shared_experts > 0 && shared_width.empty()) {
    moe.shared_ffn_hidden_size = moe.expert_ffn_hidden_size;
  }
  moe.router_bias = names.router_bias;
  moe.shared_expert_gate = names.shared_gate && !shared_width.empty();
  // Gemma 4's router has a scale for each element and for each expert: the same sizes as a gate and biases.
  if (names.dense_beside) moe.shared_expert_gate = moe.router_bias = true;
  model.moe = moe;
  return Ok{};
}

// Layers with experts may be given by a period, an interval, lists or words. A later form in this function
// overrides an earlier one.
Result<std::vector<bool>> read_expert_layers(ObjectReader& keys, const ExpertKeys& names,
                                             const Transformer& model) {
  constexpr std::int64_t kMostLayers = 1'000'000;
  if (model.n_layers > kMostLayers) return keys.error("num_hidden_layers").expected("fewer layers");
  std::int64_t dense = 0, every = 1, interval = 1, end = model.n_layers, frequency = 1;
  if (names.layers != "moe_layer_freq") STEPCAST_TRY(keys.optional("moe_layer_freq", frequency));
  STEPCAST_TRY(optional_size(keys, first_of(keys, kDenseInFront), dense));
  STEPCAST_TRY(keys.optional("decoder_sparse_step", every));
  STEPCAST_TRY(keys.optional("moe_layer_interval", interval));
  STEPCAST_TRY(keys.optional("moe_layer_end_index", end));
  // Periods are meaningless in a model without experts.
  if (!model.moe) every = interval = frequency = 1;
  if (every < 1 || interval != 1 || frequency < 1 || end + 1 < model.n_layers)
    return keys.error(every < 1       ? "decoder_sparse_step"
                      : interval != 1 ? "moe_layer_interval"
                      : frequency < 1 ? "moe_layer_freq"
                                      : "moe_layer_end_index",
                      "this placement of experts is not modelled");
  std::vector<bool> has;
  for (std::int64_t layer = 0; layer < model.n_layers; ++layer)
    has.push_back(model.moe && layer >= dense && (layer + 1) % every == 0 && layer % frequency == 0);
  STEPCAST_ASSIGN(const std::vector<bool> periodic,
                  layers_of_period(keys, "expert_layer_period", "expert_layer_offset", model.n_layers));
  if (!periodic.empty() && model.moe) has = periodic;
  const std::string_view layers = keys.has(names.layers) ? names.layers : "mlp_layer_types";
  if (layers != "mlp_layer_types") keys.ignore("mlp_layer_types");  // a repetition
  if (keys.has(layers)) {
    STEPCAST_ASSIGN(const std::vector<std::string> list,
                    read_words(keys, layers, model.n_layers, model.n_multi_token_prediction_layers));
    for (std::size_t layer = 0; layer < list.size(); ++layer) {
      const bool sparse = list[layer] == "1" || list[layer] == "sparse" || list[layer] == "moe";
      if (!sparse && list[layer] != "0" && list[layer] != "dense")
        return keys.error(layers).found(list[layer].substr(0, 60)).expected("0 or 1 for each layer");
      has[layer] = model.moe && sparse;
    }
  }
  STEPCAST_TRY(read_listed_layers(keys, has));
  return has;
}

}  // namespace stepcast::detail

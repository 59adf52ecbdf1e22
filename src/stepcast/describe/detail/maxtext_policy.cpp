#include "stepcast/describe/detail/maxtext_policy.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace stepcast::detail {
namespace {

struct Policy {
  std::string_view name, keeps, offloads;
};
constexpr std::string_view kQkv = "qkv", kAttention = "qkv attention_output",
                           kProducts = "qkv attention_output ffn_up ffn_down",
                           kAll = "qkv attention attention_output ffn_up ffn_down";
constexpr Policy kPolicies[] = {{"full", "", ""},
                                {"minimal", kProducts, ""},
                                {"minimal_with_context", kAll, ""},
                                {"minimal_flash", kAll, ""},
                                {"minimal_with_context_and_quantization", kAll, ""},
                                {"save_dot_with_context_except_mlp", "qkv attention attention_output", ""},
                                {"save_dot_except_mlp", kAttention, ""},
                                {"save_dot_except_mlpwi", "qkv attention_output ffn_down", ""},
                                {"save_qkv_proj", kQkv, ""},
                                {"save_out_proj", "attention_output", ""},
                                {"qkv_proj_offloaded", kQkv, kQkv},
                                {"minimal_offloaded", kProducts, kProducts}};

void use_custom_policy(ConfigWords& words) {
  JobSettings& s = words.settings;
  s.recompute_keeps = s.recompute_offloads = "";
  std::string& qkv = words.kept_qkv;
  const auto is_kept = [](const std::string& where) { return where == "device" || where == "offload"; };
  if (is_kept(words.kept_query) && is_kept(words.kept_key) && is_kept(words.kept_value))
    qkv = words.kept_query;
  const std::pair<std::string_view, const std::string*> results[] = {
      {"input", &words.kept_input},         {"qkv", &qkv},
      {"attention", &words.kept_attention}, {"attention_output", &words.kept_attention_output},
      {"ffn_up", &words.kept_ffn_up},       {"ffn_down", &words.kept_ffn_down}};
  for (const auto& [result, where] : results) {
    if (is_kept(*where)) *s.recompute_keeps += std::string{result} + " ";
    if (*where == "offload") *s.recompute_offloads += std::string{result} + " ";
  }
}

}  // namespace

bool use_remat_policy(const std::string& name, ConfigWords& words) {
  JobSettings& s = words.settings;
  s.recompute = Recompute::full;
  if (name == "custom") {
    use_custom_policy(words);
    return true;
  }
  const auto* const known = std::ranges::find(kPolicies, name, &Policy::name);
  if (known == std::end(kPolicies)) return false;
  s.recompute_keeps = std::string{known->keeps};
  s.recompute_offloads = std::string{known->offloads};
  return true;
}

}  // namespace stepcast::detail

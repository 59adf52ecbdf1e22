#include <algorithm>
#include <utility>
#include <vector>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/shipped_table.h"
#include "stepcast/describe/detail/huggingface_readers.h"

namespace stepcast::detail {
namespace {

constexpr HuggingfaceFamily kFamilies[] = {
    {"gpt2 gpt-sw3", read_gpt2},
    {"gpt_neox", read_gpt_neox},
    {"bert", read_bert},
    {"opt", read_opt},
    {"mpt", read_mpt},
    {"bloom", read_bloom},
    {"falcon", read_falcon},
    {"gptj codegen", read_gptj},
    {"phi", read_phi},
    {"starcoder2", read_starcoder2},
    {"roberta xlm-roberta camembert", read_roberta},
    {"xlnet", read_xlnet},
    {"llama granite exaone helium internlm3 iquestcoder granite_docling_text granite4_vision_text",
     read_llama},
    {"mistral ministral3", read_mistral},
    {"mixtral", read_mixtral},
    {"qwen2 qwen2_5_omni_text qwen2_vl_text qwen2_5_vl_text", read_qwen2},
    {"qwen2_moe", read_qwen2_moe},
    {"qwen3 qwen3_vl_text", read_qwen3},
    {"qwen3_moe qwen3_vl_moe_text qwen3_omni_moe_text", read_qwen3_moe},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"gemma3_text", read_gemma3_text},
    {"phi3", read_phi3},
    {"olmo2", read_olmo2},
    {"olmo3", read_olmo3},
    {"olmoe flex_olmo", read_olmoe},
    {"smollm3", read_smollm3},
    {"deepseek_v2 deepseek_v3 kimi_k2 minicpm3 glm4_moe_lite sarvam_mla youtu mistral4", read_deepseek},
    {"deepseek_v32 glm_moe_dsa", read_deepseek_sparse},
    {"deepseek_v4 deepseek_ref", read_deepseek_v4},
    {"nemotron-nas", read_nemotron_nas},
    {"gpt_oss", read_gpt_oss},
    {"llama4_text", read_llama4_text},
    {"dbrx", read_dbrx},
    {"gpt_bigcode", read_gpt_bigcode},
    {"gpt_neo", read_gpt_neo},
    {"vaultgemma", read_vaultgemma},
    {"mamba2", read_mamba2},
    {"mamba falcon_mamba", read_mamba1},
    {"mllama_text_model", read_mllama_text},
    {"longcat_flash", read_longcat},
};

using KeyList = std::pair<std::string_view, std::string_view>;

Result<std::vector<KeyList>> read_lists() {
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(shipped_table("huggingface_keys.csv"), "huggingface_keys.csv"));
  std::vector<KeyList> lists;
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return lists;
    lists.emplace_back(rows.cell("list"), rows.cell("keys"));
  }
}

}  // namespace

std::span<const HuggingfaceFamily> huggingface_families() { return kFamilies; }

std::string_view huggingface_keys(std::string_view list) {
  static const std::vector<KeyList> kLists = as_shipped(read_lists());
  return std::ranges::find(kLists, list, &KeyList::first)->second;
}

}  // namespace stepcast::detail

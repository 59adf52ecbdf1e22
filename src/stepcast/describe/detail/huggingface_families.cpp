#include "stepcast/describe/detail/huggingface_families.h"

#include "stepcast/describe/detail/huggingface_readers.h"

namespace stepcast::detail {
namespace {

constexpr HuggingfaceFamily kFamilies[] = {
    {"gpt2", read_gpt2},
    {"gpt_neox", read_gpt_neox},
    {"bert", read_bert},
    {"opt", read_opt},
    {"mpt", read_mpt},
    {"bloom", read_bloom},
    {"falcon", read_falcon},
    {"gptj", read_gptj},
    {"phi", read_phi},
    {"starcoder2", read_starcoder2},
    {"roberta", read_roberta},
    {"xlm-roberta", read_roberta},
    {"xlnet", read_xlnet},
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"mixtral", read_mixtral},
    {"qwen2", read_qwen2},
    {"qwen2_moe", read_qwen2_moe},
    {"qwen3", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"gemma3_text", read_gemma3_text},
    {"nemotron", read_nemotron},
    {"phi3", read_phi3},
    {"olmo2", read_olmo2},
    {"olmo3", read_olmo3},
    {"olmoe", read_olmoe},
    {"granite", read_granite},
    {"smollm3", read_smollm3},
    {"deepseek_v2", read_deepseek},
    {"deepseek_v3", read_deepseek},
    {"kimi_k2", read_deepseek},
    {"deepseek_v32", read_deepseek_sparse},
    {"glm_moe_dsa", read_deepseek_sparse},
    {"deepseek_v4", read_deepseek_v4},
    {"deepseek_ref", read_deepseek_v4},
    {"nemotron-nas", read_nemotron_nas},
    {"qwen3_vl_text", read_qwen3},
    {"qwen3_vl_moe_text", read_qwen3_moe},
    {"gpt_oss", read_gpt_oss},
    {"glm4_moe", read_glm4_moe},
    {"llama4_text", read_llama4_text},
    {"dbrx", read_dbrx},
    // The same layers under other names.
    {"qwen2_vl_text", read_qwen2},
    {"qwen2_5_vl_text", read_qwen2},
    {"glm4v_moe_text", read_glm4_moe},
    {"ministral3", read_mistral},
    {"exaone", read_llama},
    {"helium", read_llama},
    {"internlm3", read_llama},
    {"iquestcoder", read_llama},
    {"glm4_moe_lite", read_deepseek},
    {"sarvam_mla", read_deepseek},
    {"youtu", read_deepseek},
};

#define KEY(name) name,
constexpr std::string_view kHarmless[] = {
#include "stepcast/describe/detail/huggingface_keys.def"
};
#undef KEY

}  // namespace

std::span<const HuggingfaceFamily> huggingface_families() { return kFamilies; }
std::span<const std::string_view> harmless_huggingface_keys() { return kHarmless; }

}  // namespace stepcast::detail

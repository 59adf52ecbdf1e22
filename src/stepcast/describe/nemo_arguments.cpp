#include "stepcast/describe/nemo_arguments.h"

#include <algorithm>
#include <charconv>

#include "stepcast/base/text.h"

namespace stepcast::detail {
namespace {

std::string_view scalar_at(const YamlScalars& yaml, std::string_view path) {
  const auto found = yaml.find(path);
  return found == yaml.end() || found->second == "null" ? std::string_view{}
                                                        : std::string_view{found->second};
}

std::optional<std::int64_t> whole_scalar(std::string_view text) {
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr std::int64_t kMost = 1'000'000'000;
  if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size() || value < 0 ||
      value > kMost)
    return std::nullopt;
  return value;
}

bool is_true_scalar(std::string_view text) { return lower(text) == "true"; }

// NeMo's names where they are not Megatron's.
constexpr std::pair<std::string_view, std::string_view> kNemoNames[] = {
    {"encoder_seq_length", "seq_length"},
    {"activations_checkpoint_granularity", "recompute_granularity"},
    {"activations_checkpoint_method", "recompute_method"},
    {"activations_checkpoint_num_layers", "recompute_num_layers"},
    {"ub_tp_comm_overlap", "tp_comm_overlap"},
    {"gradient_accumulation_fusion", "gradient_accumulation_fusion"},
    {"num_moe_experts", "num_experts"},
    {"qk_layernorm", "qk_layernorm"},
    {"rotary_percentage", "rotary_percent"},
    {"moe_router_topk", "moe_router_topk"},
    {"fp8_recipe", "fp8_recipe"},
    {"fp8_params", "fp8_param_gather"},
    {"fp8_param", "fp8_param_gather"},
    {"num_layers_in_first_pipeline_stage", "decoder_first_pipeline_num_layers"},
    {"num_layers_in_last_pipeline_stage", "decoder_last_pipeline_num_layers"},
};

// What Bridge's names of mixed precision say of fp8: "bf16_with_fp8_subchannel_scaling_mixed".
constexpr std::pair<std::string_view, std::string_view> kFp8Recipes[] = {{"mxfp8", "mxfp8"},
                                                                         {"fp8_delayed", "delayed"},
                                                                         {"fp8_current", "tensorwise"},
                                                                         {"fp8_subchannel", "blockwise"},
                                                                         {"fp8_blockwise", "blockwise"}};

}  // namespace

std::vector<std::pair<std::string, std::string>> megatron_arguments_of(const YamlScalars& yaml,
                                                                       std::optional<std::int64_t>& n_gpus) {
  std::vector<std::pair<std::string, std::string>> arguments;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) arguments.emplace_back(name, value);
  };
  if (scalar_at(yaml, "model.num_layers").empty()) return arguments;
  for (const auto& [path, value] : yaml) {
    std::string_view key = path;
    if (value == "null") continue;
    const std::string_view section = key.substr(0, key.find('.'));
    if (section != "model" && section != "train") continue;
    key.remove_prefix(section.size() + 1);
    if (key.find('.') != std::string_view::npos) continue;
    const auto* const other = std::find_if(std::begin(kNemoNames), std::end(kNemoNames),
                                           [&](const auto& n) { return n.first == key; });
    const std::string name{other == std::end(kNemoNames) ? key : other->second};
    const bool is_truth = lower(value) == "true" || lower(value) == "false";
    arguments.emplace_back(name, is_truth ? (is_true_scalar(value) ? "True" : "False") : value);
  }
  // NeMo 1's own words.
  const std::string activation{scalar_at(yaml, "model.activation")};
  if (activation.find("swiglu") != std::string::npos ||
      is_true_scalar(scalar_at(yaml, "model.gated_linear_unit")))
    add("swiglu", "True");
  const std::string norm = lower(scalar_at(yaml, "model.normalization"));
  if (norm == "rmsnorm") add("normalization", "RMSNorm");
  if (norm.starts_with("layernorm")) add("normalization", "LayerNorm");
  if (lower(scalar_at(yaml, "model.share_embeddings_and_output_weights")) == "false")
    add("untie_embeddings_and_output_weights", "True");
  if (lower(scalar_at(yaml, "model.bias")) == "false") add("add_bias_linear", "False");
  if (!scalar_at(yaml, "model.num_query_groups").empty()) add("group_query_attention", "True");
  const std::string precision = lower(std::string{scalar_at(yaml, "trainer.precision")} +
                                      std::string{scalar_at(yaml, "mixed_precision")});
  if (precision.starts_with("bf16")) add("bf16", "True");
  if (precision.starts_with("16") || precision.starts_with("fp16")) add("fp16", "True");
  for (const auto& [word, recipe] : kFp8Recipes) {
    if (precision.find(word) == std::string::npos) continue;
    add("bf16", "True");
    add("fp8", "hybrid");
    add("fp8_recipe", recipe);
  }
  if (precision.find("fp4") != std::string::npos) add("fp4", "e2m1");
  if (is_true_scalar(scalar_at(yaml, "model.fp8")))
    add("fp8", is_true_scalar(scalar_at(yaml, "model.fp8_e4m3")) ? "e4m3" : "hybrid");
  if (scalar_at(yaml, "model.optim.name") == "distributed_fused_adam" ||
      is_true_scalar(scalar_at(yaml, "optimizer.use_distributed_optimizer")) ||
      is_true_scalar(scalar_at(yaml, "ddp.use_distributed_optimizer")))
    add("use_distributed_optimizer", "True");
  for (const std::string_view key : {"overlap_grad_reduce", "overlap_param_gather"})
    if (is_true_scalar(scalar_at(yaml, "ddp." + std::string{key}))) add(key, "True");
  if (is_true_scalar(scalar_at(yaml, "model.optim.overlap_grad_sync"))) add("overlap_grad_reduce", "True");
  if (is_true_scalar(scalar_at(yaml, "model.optim.overlap_param_sync"))) add("overlap_param_gather", "True");
  if (scalar_at(yaml, "model.seq_length").empty() && scalar_at(yaml, "model.encoder_seq_length").empty())
    add("seq_length", scalar_at(yaml, "dataset.sequence_length"));
  if (scalar_at(yaml, "model.max_position_embeddings").empty()) {
    for (const char* length : {"model.seq_length", "model.encoder_seq_length", "dataset.sequence_length"}) {
      if (scalar_at(yaml, length).empty()) continue;
      add("max_position_embeddings", scalar_at(yaml, length));
      break;
    }
  }
  const auto devices = whole_scalar(scalar_at(yaml, "trainer.devices")),
             nodes = whole_scalar(scalar_at(yaml, "trainer.num_nodes"));
  constexpr std::int64_t kMost = 1'000'000;
  if (devices && nodes && *devices > 0 && *nodes > 0 && *devices < kMost && *nodes < kMost)
    n_gpus = *devices * *nodes;
  return arguments;
}

std::optional<Job> foundry_job(const YamlScalars& yaml) {
  const auto layers = whole_scalar(scalar_at(yaml, "model.n_layers")),
             hidden = whole_scalar(scalar_at(yaml, "model.d_model")),
             heads = whole_scalar(scalar_at(yaml, "model.n_heads"));
  if (!layers || !hidden || !heads) return std::nullopt;
  Job job;
  job.framework = Framework::fsdp;
  JobSettings& s = job.settings;
  s.n_layers = layers;
  s.hidden_size = hidden;
  s.n_heads = heads;
  if (const auto ratio = whole_scalar(scalar_at(yaml, "model.expansion_ratio"));
      ratio && *ratio > 0 && *ratio < 1000)
    s.ffn_hidden_size = *ratio * *hidden;
  s.vocab_size = whole_scalar(scalar_at(yaml, "model.vocab_size"));
  s.max_position = s.seq_len_tokens = whole_scalar(scalar_at(yaml, "max_seq_len"));
  s.global_batch_sequences = whole_scalar(scalar_at(yaml, "global_train_batch_size"));
  s.micro_batch_sequences = whole_scalar(scalar_at(yaml, "device_train_microbatch_size"));
  if (is_true_scalar(scalar_at(yaml, "model.no_bias"))) s.linear_bias = false;
  if (is_true_scalar(scalar_at(yaml, "model.attn_config.alibi"))) s.position = PositionEncoding::alibi;
  const std::string precision = lower(scalar_at(yaml, "precision"));
  s.dtype = precision.find("fp16") != std::string::npos   ? DType::fp16
            : precision.find("fp32") != std::string::npos ? DType::fp32
                                                          : DType::bf16;
  const std::string sharding{scalar_at(yaml, "fsdp_config.sharding_strategy")};
  s.sharding = sharding == "SHARD_GRAD_OP" ? Sharding::zero2
               : sharding == "NO_SHARD"    ? Sharding::none
                                           : Sharding::zero3;
  if (is_true_scalar(scalar_at(yaml, "fsdp_config.activation_checkpointing"))) s.recompute = Recompute::full;
  return job;
}

}  // namespace stepcast::detail

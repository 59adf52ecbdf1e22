// Translates configs of the NeMo family. Their keys are mostly argument names of Megatron-LM, so configs are
// converted into a Megatron-LM command line.
#include "stepcast/formats/nemo_arguments.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/scan.h"
#include "stepcast/base/text.h"
#include "stepcast/base/yaml_document.h"
#include "stepcast/formats/detail/foreign_words.h"
#include "stepcast/formats/detail/megatron_flags.h"
#include "stepcast/formats/megatron_writer.h"
#include "stepcast/formats/presets.h"

namespace stepcast::detail {

namespace {

// The value at a path; empty if it is missing or null.
std::string_view scalar_at(const YamlScalars& yaml, std::string_view path) {
  const auto found = yaml.find(path);
  return found == yaml.end() || found->second == "null" ? std::string_view{}
                                                        : std::string_view{found->second};
}

// An integer from 0 to 1e9; nothing for other texts.
std::optional<std::int64_t> whole_scalar(std::string_view text) {
  const auto value = scan<std::int64_t>(text);
  constexpr std::int64_t kMost = 1'000'000'000;
  return value && *value >= 0 && *value <= kMost ? value : std::nullopt;
}

bool is_true_scalar(std::string_view text) { return lower(text) == "true"; }

// The preset for the class of a model: Llama31Config70B is llama-3.1-70b. Errors: no class, or an unknown one.
Result<std::string> preset_of_nemo_class(const YamlScalars& scalars, const std::string& file) {
  std::string name;
  for (const char* path : {"model._target_", "model.model._target_"})
    if (const auto at = scalars.find(path); at != scalars.end())
      name = at->second.substr(at->second.rfind('.') + 1);
  const std::size_t config = name.find("Config");
  if (config != std::string::npos) name.erase(config, std::string_view{"Config"}.size());
  for (const std::string_view word : {"ModelProvider", "Provider", "MoE", "_"})
    if (const std::size_t at = name.find(word); at != std::string::npos) name.erase(at, word.size());
  // Class names have no dot in the version, so a dot is inserted between two digits.
  std::string pointed = name;
  for (std::size_t i = 1; i < pointed.size(); ++i)  // Llama31 is llama-3.1
    if (is_digit(pointed[i]) && is_digit(pointed[i - 1])) {
      pointed.insert(i, ".");
      break;
    }
  auto preset = find_preset(pointed);
  if (!preset) preset = find_preset(name);
  if (!preset) {
    return Error::at(file, "model")
        .found(name.empty() ? std::string{"no num_layers, and no class"}
                            : fmt::format("`{}`", name.substr(0, 80)))
        .expected("model.num_layers and the other sizes, or the class of a preset model")
        .advice("give its config.json with --model");
  }
  return preset->name;
}

// The value that "${model.seq_length}" or "${.seq_length}" (in the same section) refers to.
std::string interpolated(const YamlScalars& scalars, const std::string& path, std::string value) {
  for (int depth = 0; depth < 8 && value.starts_with("${") && value.ends_with('}'); ++depth) {
    std::string other = value.substr(2, value.size() - 3);
    if (other.starts_with('.')) other.insert(0, path.substr(0, path.rfind('.')));
    const auto at = scalars.find(other);
    if (at == scalars.end()) break;
    value = at->second;
  }
  return value;
}

// LoRA adapters in `peft`. Defaults as in NeMo and Bridge: rank (`dim`) 32, on all GEMMs.
void use_adapters(const YamlScalars& scalars, Job& job) {
  const auto word = [&](const char* path, const char* otherwise) {
    const auto at = scalars.find(path);
    return at == scalars.end() || at->second == "null" ? std::string{otherwise} : at->second;
  };
  // The kind of adapter: a class of NeMo 2, a scheme of NeMo 1, or a plain word.
  std::string kind = word("peft._target_", word("peft.peft_scheme", word("peft", "").c_str()).c_str());
  kind.erase(0, kind.rfind('.') + 1);
  if (kind.empty() || lower(kind) == "none") return;
  if (lower(kind) != "lora") return job.not_modelled.push_back("peft: " + kind.substr(0, 60));
  // Names of Megatron Core, then those of NeMo 1.
  constexpr std::string_view kProducts[][4] = {{"linear_qkv", "attention_qkv", "\"attention\"", "\"all\""},
                                               {"linear_proj", "attention_dense", "\"attention\"", "\"all\""},
                                               {"linear_fc1", "mlp_fc1", "\"mlp\"", "\"all\""},
                                               {"linear_fc2", "mlp_fc2", "\"mlp\"", "\"all\""}};
  // A list is in one text here; names are searched in it.
  const std::string modules = word("peft.target_modules", "\"all\""), rank = word("peft.dim", "32");
  std::string products;
  for (const auto& names : kProducts)
    if (std::ranges::any_of(names, [&](std::string_view n) { return modules.find(n) != std::string::npos; }))
      products += (products.empty() ? "" : " ") + std::string{names[0]};
  if (products.empty()) job.not_modelled.push_back("peft.target_modules: " + modules.substr(0, 60));
  const auto dim = std::strtol(rank.c_str(), nullptr, 10);
  if (!job.settings.lora_rank) job.settings.lora_rank = std::clamp(dim, 1L, 65536L);
  const double dropout = std::strtod(word("peft.dropout", "0").c_str(), nullptr);
  if (!job.settings.lora_dropout && dropout > 0 && dropout < 1) job.settings.lora_dropout = dropout;
  if (!job.settings.lora_targets && !products.empty()) job.settings.lora_targets = products;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> megatron_arguments_of(const YamlScalars& yaml,
                                                                       std::optional<std::int64_t>& n_gpus) {
  std::vector<std::pair<std::string, std::string>> arguments;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) arguments.emplace_back(name, value);
  };
  // Only direct members of `model` and `train` are arguments of Megatron-LM.
  if (scalar_at(yaml, "model.num_layers").empty()) return arguments;
  for (const auto& [path, value] : yaml) {
    std::string_view key = path;
    if (value == "null") continue;
    const std::string_view section = key.substr(0, key.find('.'));
    if (section != "model" && section != "train") continue;
    key.remove_prefix(section.size() + 1);
    if (key.find('.') != std::string_view::npos) continue;
    // Names of NeMo that differ from those of Megatron-LM.
    const auto nemo = foreign_words("nemo_arguments");
    const auto other = std::ranges::find(nemo, key, &ForeignWord::word);
    const std::string name{other == nemo.end() ? key : other->says};
    const bool is_truth = lower(value) == "true" || lower(value) == "false";
    arguments.emplace_back(name, is_truth ? (is_true_scalar(value) ? "True" : "False") : value);
  }
  // Settings that NeMo 1 expresses otherwise.
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
  // The key of NeMo and that of Bridge.
  const std::string precision = lower(std::string{scalar_at(yaml, "trainer.precision")} +
                                      std::string{scalar_at(yaml, "mixed_precision")});
  if (precision.starts_with("bf16")) add("bf16", "True");
  if (precision.starts_with("16") || precision.starts_with("fp16")) add("fp16", "True");
  // Bridge's names of mixed precision include the fp8 recipe: "bf16_with_fp8_subchannel_scaling_mixed".
  for (const auto& [word, recipe] : foreign_words("precision_recipes")) {
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
  // Without a limit of positions, the sequence length is the limit.
  if (scalar_at(yaml, "model.max_position_embeddings").empty()) {
    for (const char* length : {"model.seq_length", "model.encoder_seq_length", "dataset.sequence_length"}) {
      if (scalar_at(yaml, length).empty()) continue;
      add("max_position_embeddings", scalar_at(yaml, length));
      break;
    }
  }
  // Number of GPUs: devices per node times nodes.
  const auto devices = whole_scalar(scalar_at(yaml, "trainer.devices")),
             nodes = whole_scalar(scalar_at(yaml, "trainer.num_nodes"));
  constexpr std::int64_t kMost = 1'000'000;
  if (devices && nodes && *devices > 0 && *nodes > 0 && *devices < kMost && *nodes < kMost)
    n_gpus = *devices * *nodes;
  return arguments;
}

// A config is of LLM Foundry if it has these three sizes.
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

// Sections that NeMo and Bridge name differently are renamed first; then the arguments are converted.
Status read_nemo_config(const JsonValue& root, const Job& said, FrameworkConfig& out) {
  const std::string& file = said.config->name;
  // Path prefixes and their replacements. The first match is used.
  constexpr std::pair<std::string_view, std::string_view> kSections[] = {
      {"model.config.", "model."},
      {"trainer.strategy.ddp.", "ddp."},
      {"trainer.strategy.", "train."},
      {"data.", "train."},
      {"optim.config.", "optimizer."},
      {"trainer.plugins.precision", "trainer.precision"},
      {"trainer.plugins.", "train."},
      {"optimizer.config.", "optimizer."},
      {"mixed_precision.", "train."},
      {"comm_overlap.", "train."},
      {"model.peft.lora_tuning.adapter_dim", "peft.dim"},
      {"model.peft.lora_tuning.", "peft."},
      {"model.peft.", "peft."}};
  // References are resolved with the original paths, then the paths are renamed.
  const YamlScalars written = yaml_scalars(root);
  YamlScalars scalars;
  for (const auto& [path, value] : written) {
    std::string name = path;
    for (const auto& [from, to] : kSections) {
      if (!name.starts_with(from)) continue;
      name.replace(0, from.size(), to);
      break;
    }
    scalars.insert_or_assign(std::move(name), interpolated(written, path, value));
  }
  out.job = said;
  out.job.config.reset();
  use_adapters(scalars, out.job);
  if (scalars.contains("model.num_layers") && !scalars.contains("model.hidden_size"))
    return Error::at(file, "")
        .found("keys of NeMo 2 or Megatron-Bridge")
        .expected("model.hidden_size together with model.num_layers");
  const std::string missing = scalars.contains("model.num_layers") ? "" : "model.num_layers";
  if (!missing.empty() && said.model.empty() && !said.transformer) {
    STEPCAST_ASSIGN(out.job.model, preset_of_nemo_class(scalars, file));
  }
  std::optional<std::int64_t> gpus;
  if (!missing.empty())
    scalars["model.num_layers"] = "1";  // a placeholder: arguments are read only if it is present
  auto arguments = megatron_arguments_of(scalars, gpus);
  const bool says_type =
      std::ranges::any_of(arguments, [](const auto& a) { return a.first == "bf16" || a.first == "fp16"; });
  if (!says_type && !scalars.contains("trainer.precision") && !said.settings.dtype) {
    arguments.emplace_back("bf16", "True");
    out.notes.emplace_back("computation type not given: bf16, as in the recipes");
  }
  // A named model already has its sizes, so the arguments with sizes are dropped.
  const bool has_model = !out.job.model.empty() || out.job.transformer;
  if (has_model) {
    std::erase_if(arguments, [](const auto& a) {
      const auto flag = find_megatron_flag("--" + std::string{a.first});
      return a.first == "num_layers" || a.first == "hidden_size" ||
             (flag.setting == nullptr && a.first == "vocab_size");
    });
  }
  // Keys that are not flags of Megatron-LM. The list is limited to about 200 characters.
  std::string unknown;
  for (const auto& [name, value] : arguments) {
    std::string flag = "--" + name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    const auto found = find_megatron_flag(flag);
    const bool says = value != "null" && value != "false" && value != "False" && !value.starts_with("{");
    if (says && found.setting == nullptr && found.row == nullptr && name.front() != '_' &&
        unknown.size() < 200)
      unknown += (unknown.empty() ? "" : ", ") + name;
  }
  if (!unknown.empty()) {
    if (said.strict) return Error::at(file, "", "keys that are not flags of Megatron-LM: " + unknown);
    out.notes.push_back("left out, not flags of Megatron-LM: " + unknown);
  }
  out.job.command_line = command_line_of_arguments(arguments, false);
  if (!out.job.n_gpus) out.job.n_gpus = gpus;
  if (!out.job.framework) out.job.framework = Framework::nemo;
  return Ok{};
}

}  // namespace stepcast::detail

#include "stepcast/describe/detail/nemo_config.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/text.h"
#include "stepcast/base/yaml_document.h"
#include "stepcast/describe/detail/megatron_flags.h"
#include "stepcast/describe/megatron_arguments.h"
#include "stepcast/describe/nemo_arguments.h"
#include "stepcast/describe/presets.h"

namespace stepcast::detail {
namespace {

// The preset that the class of a model stands for: Llama31Config70B is llama-3.1-70b.
Result<std::string> preset_of_nemo_class(const YamlScalars& scalars, const std::string& file) {
  std::string name;
  for (const char* path : {"model._target_", "model.model._target_"})
    if (const auto at = scalars.find(path); at != scalars.end())
      name = at->second.substr(at->second.rfind('.') + 1);
  const std::size_t config = name.find("Config");
  if (config != std::string::npos) name.erase(config, std::string_view{"Config"}.size());
  for (const std::string_view word : {"ModelProvider", "Provider", "MoE", "_"})
    if (const std::size_t at = name.find(word); at != std::string::npos) name.erase(at, word.size());
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
        .expected("model.num_layers and its kin, or the class of a model that is a preset")
        .advice("give its config.json with --model");
  }
  return preset->name;
}

// What "${model.seq_length}" and "${.seq_length}", beside it, stand for.
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

// `peft`: LoRA of rank `dim`, 32 on all products where it is not said, as NeMo and Bridge have it.
void use_adapters(const YamlScalars& scalars, Job& job) {
  const auto word = [&](const char* path, const char* otherwise) {
    const auto at = scalars.find(path);
    return at == scalars.end() || at->second == "null" ? std::string{otherwise} : at->second;
  };
  std::string kind = word("peft._target_", word("peft.peft_scheme", word("peft", "").c_str()).c_str());
  kind.erase(0, kind.rfind('.') + 1);
  if (kind.empty() || lower(kind) == "none") return;
  if (lower(kind) != "lora") return job.not_modelled.push_back("peft: " + kind.substr(0, 60));
  // Megatron Core's names, and NeMo 1's.
  constexpr std::string_view kProducts[][4] = {{"linear_qkv", "attention_qkv", "\"attention\"", "\"all\""},
                                               {"linear_proj", "attention_dense", "\"attention\"", "\"all\""},
                                               {"linear_fc1", "mlp_fc1", "\"mlp\"", "\"all\""},
                                               {"linear_fc2", "mlp_fc2", "\"mlp\"", "\"all\""}};
  const std::string modules = word("peft.target_modules", "\"all\""), rank = word("peft.dim", "32");
  std::string products;
  for (const auto& names : kProducts)
    if (std::ranges::any_of(names, [&](std::string_view n) { return modules.find(n) != std::string::npos; }))
      products += (products.empty() ? "" : " ") + std::string{names[0]};
  if (products.empty()) job.not_modelled.push_back("peft.target_modules: " + modules.substr(0, 60));
  const auto dim = std::strtol(rank.c_str(), nullptr, 10);
  if (!job.settings.lora_rank) job.settings.lora_rank = std::clamp(dim, 1L, 65536L);
  if (!job.settings.lora_targets && !products.empty()) job.settings.lora_targets = products;
}

}  // namespace

Status read_nemo_config(const JsonValue& root, const Job& said, FrameworkConfig& out) {
  const std::string& file = said.config->name;
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
    scalars["model.num_layers"] = "1";  // not for the line: arguments are read where it is there
  auto arguments = megatron_arguments_of(scalars, gpus);
  const bool says_type =
      std::ranges::any_of(arguments, [](const auto& a) { return a.first == "bf16" || a.first == "fp16"; });
  if (!says_type && !scalars.contains("trainer.precision") && !said.settings.dtype) {
    arguments.emplace_back("bf16", "True");
    out.notes.emplace_back("type of the computation not given: bf16, as recipes have it");
  }
  const bool has_model = !out.job.model.empty() || out.job.transformer;
  if (has_model) {
    std::erase_if(arguments, [](const auto& a) {
      const auto flag = find_megatron_flag("--" + std::string{a.first});
      return a.first == "num_layers" || a.first == "hidden_size" ||
             (flag.setting == nullptr && a.first == "vocab_size");
    });
  }
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
    out.notes.push_back("left out, as no flags of Megatron-LM are called so: " + unknown);
  }
  out.job.command_line = command_line_of_arguments(arguments, false);
  if (!out.job.n_gpus) out.job.n_gpus = gpus;
  if (!out.job.framework) out.job.framework = Framework::nemo;
  return Ok{};
}

}  // namespace stepcast::detail

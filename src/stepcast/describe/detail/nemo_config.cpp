#include "stepcast/describe/detail/nemo_config.h"

#include <algorithm>
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

}  // namespace

Status read_nemo_config(const JsonValue& root, const Job& said, FrameworkConfig& out) {
  const std::string& file = said.config->name;
  constexpr std::pair<std::string_view, std::string_view> kSections[] = {
      {"model.config.", "model."},      {"trainer.strategy.ddp.", "ddp."},
      {"trainer.strategy.", "train."},  {"data.", "train."},
      {"optim.config.", "optimizer."},  {"trainer.plugins.precision", "trainer.precision"},
      {"trainer.plugins.", "trainer."}, {"optimizer.config.", "optimizer."}};
  YamlScalars scalars;
  for (auto& [path, value] : yaml_scalars(root)) {
    std::string name = path;
    for (const auto& [from, to] : kSections) {
      if (!name.starts_with(from)) continue;
      name.replace(0, from.size(), to);
      break;
    }
    scalars.insert_or_assign(std::move(name), value);
  }
  out.job = said;
  out.job.config.reset();
  const std::string missing = scalars.contains("model.num_layers") ? "" : "model.num_layers";
  if (!missing.empty() && said.model.empty() && !said.transformer) {
    STEPCAST_ASSIGN(out.job.model, preset_of_nemo_class(scalars, file));
  }
  std::optional<std::int64_t> gpus;
  if (!missing.empty())
    scalars["model.num_layers"] = "1";  // not for the line: arguments are read where it is there
  auto arguments = megatron_arguments_of(scalars, gpus);
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

// Selects the training command among all commands of a script, and adds what Slurm's options imply.
#include "stepcast/formats/detail/shell/script.h"

#include <algorithm>
#include <utility>

#include "stepcast/base/words.h"
#include "stepcast/formats/detail/shell/arithmetic.h"
#include "stepcast/formats/detail/shell/reader.h"

namespace stepcast::detail {
namespace {

// For scripts that pass their flags to another script: the flags in the values of variables.
ShellWords flags_in_variables(const ShellVariables& variables) {
  ShellWords flags;
  for (const auto& [name, value] : variables) {
    const std::string text = value ? joined_words(*value) : std::string{};
    if (!std::string_view{text}
             .substr(std::min(text.find_first_not_of(" \t\n"), text.size()))
             .starts_with("--"))
      continue;
    std::string word;
    for (const char c : text + " ") {
      if (!is_space(c)) {
        word += c;
      } else if (!word.empty()) {
        flags.push_back(std::exchange(word, {}));
      }
    }
  }
  return flags;
}

// Sets the variables of Slurm (SLURM_NNODES, ...) from the `#SBATCH` lines of the script.
void add_slurm_variables(std::string_view script, ShellVariables& variables) {
  constexpr std::pair<std::string_view, std::string_view> kOptions[] = {
      {"--nodes", "SLURM_NNODES"},     {"-N", "SLURM_NNODES"}, {"--ntasks-per-node", "SLURM_NTASKS_PER_NODE"},
      {"--ntasks", "SLURM_NTASKS"},    {"-n", "SLURM_NTASKS"}, {"--gpus-per-node", "SLURM_GPUS_ON_NODE"},
      {"--gres", "SLURM_GPUS_ON_NODE"}};
  while (!script.empty()) {
    const std::string_view line = script.substr(0, script.find('\n'));
    script.remove_prefix(std::min(line.size() + 1, script.size()));
    if (!line.starts_with("#SBATCH")) continue;
    std::string asked{line.substr(0, line.find(" #"))};
    std::ranges::replace(asked, '=', ' ');
    for (const auto& [option, name] : kOptions) {
      const std::size_t at = asked.find(" " + std::string{option} + " ");
      if (at == std::string::npos) continue;
      std::string_view value = std::string_view{asked}.substr(at + option.size() + 2);
      value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
      value = value.substr(0, value.find_first_of(" \t\r"));
      value.remove_prefix(value.rfind(':') + 1);  // gpu:h100:8
      if (shell_arithmetic(value, {}).value_or(0) > 0)
        assign(variables, std::string{name} + "=", {std::string{value}}, false);
    }
  }
  // Variables with several names, or that follow from others.
  constexpr std::pair<std::string_view, std::string_view> kSame[] = {
      {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"},
      {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"},
      {"SLURM_NTASKS", "SLURM_NNODES * SLURM_NTASKS_PER_NODE"}};
  for (const auto& [name, sum] : kSame)
    if (const auto value = shell_arithmetic(sum, variables); value && !variables.contains(name))
      assign(variables, std::string{name} + "=", {std::to_string(*value)}, false);
}

// Adds the number of tasks to `srun`, which inherits it from the job.
void add_slurm_options(ShellWords& launch, const ShellVariables& variables) {
  const auto srun = std::ranges::find(launch, "srun");
  const auto tasks = variables.find("SLURM_NTASKS");
  if (srun == launch.end() || tasks == variables.end() || !tasks->second) return;
  launch.insert(srun + 1, "--ntasks=" + joined_words(*tasks->second));
}

}  // namespace

Result<std::vector<std::string>> launch_words(std::string_view script) {
  ShellDefinitions defined;
  add_slurm_variables(script, defined.variables);
  STEPCAST_ASSIGN(std::vector<ShellWords> commands, ShellReader(script, defined).commands());
  const auto runs_python = [](const ShellWords& words) {
    return std::any_of(words.begin(), words.end(), is_python_script);
  };
  if (std::none_of(commands.begin(), commands.end(), runs_python)) {
    // The command is in a function that something outside the script calls.
    const auto functions = defined.functions;
    for (const auto& [name, body] : functions) {
      STEPCAST_ASSIGN(std::vector<ShellWords> more, ShellReader(body, defined, 1).commands());
      if (std::any_of(more.begin(), more.end(), runs_python)) commands = std::move(more);
    }
  }
  if (std::none_of(commands.begin(), commands.end(), runs_python)) {
    // The command is a text that another script receives: `COMMAND="python train.py ..." sbatch ray.sub`.
    const ShellVariables variables = defined.variables;
    for (const auto& [name, value] : variables) {
      const std::string text = value ? joined_words(*value) : std::string{};
      if (text.find(".py ") == std::string::npos && text.find(" -m ") == std::string::npos) continue;
      auto more = ShellReader(text, defined, 1).commands();
      if (more && std::any_of(more->begin(), more->end(), runs_python)) commands = *std::move(more);
    }
  }
  // Of several Python commands, the last one that trains is chosen, else the last one.
  ShellWords all, launch;
  bool is_training = false;
  for (ShellWords& words : commands) {
    all.insert(all.end(), words.begin(), words.end());
    const auto python = std::find_if(words.begin(), words.end(), is_python_script);
    if (python == words.end()) continue;
    const std::string name = python->substr(python->rfind('/') + 1);
    const bool trains =
        any_word("pretrain ppo grpo dapo sft_trainer",
                 [&](std::string_view word) { return name.find(word) != std::string::npos; }) ||
        std::ranges::any_of(words,
                            [](const std::string& word) { return word.starts_with("actor_rollout_ref."); });
    if (is_training && !trains) continue;
    is_training = trains;
    launch = std::move(words);
  }
  add_slurm_options(launch, defined.variables);
  if (!launch.empty()) return launch;
  if (all.empty() || !all.front().starts_with('-')) {
    if (ShellWords flags = flags_in_variables(defined.variables); !flags.empty()) return flags;
  }
  return all;
}

}  // namespace stepcast::detail

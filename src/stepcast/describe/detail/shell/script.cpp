#include "stepcast/describe/detail/shell/script.h"

#include <algorithm>
#include <utility>

#include "stepcast/describe/detail/shell/characters.h"
#include "stepcast/describe/detail/shell/reader.h"

namespace stepcast::detail {
namespace {

// Of a script that hands its flags to another: those that its variables hold.
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

}  // namespace

Result<std::vector<std::string>> launch_words(std::string_view script) {
  ShellDefinitions defined;
  STEPCAST_ASSIGN(std::vector<ShellWords> commands, ShellReader(script, defined).commands());
  const auto runs_python = [](const ShellWords& words) {
    return std::any_of(words.begin(), words.end(), is_python_script);
  };
  if (std::none_of(commands.begin(), commands.end(), runs_python)) {
    // A function that something else calls.
    const auto functions = defined.functions;
    for (const auto& [name, body] : functions) {
      STEPCAST_ASSIGN(std::vector<ShellWords> more, ShellReader(body, defined, 1).commands());
      if (std::any_of(more.begin(), more.end(), runs_python)) commands = std::move(more);
    }
  }
  ShellWords all, launch;
  bool is_training = false;
  for (ShellWords& words : commands) {
    all.insert(all.end(), words.begin(), words.end());
    const auto python = std::find_if(words.begin(), words.end(), is_python_script);
    if (python == words.end()) continue;
    const bool trains = python->find("pretrain") != std::string::npos;
    if (is_training && !trains) continue;
    is_training = trains;
    launch = std::move(words);
  }
  if (!launch.empty()) return launch;
  if (all.empty() || !all.front().starts_with('-')) {
    if (ShellWords flags = flags_in_variables(defined.variables); !flags.empty()) return flags;
  }
  return all;
}

}  // namespace stepcast::detail

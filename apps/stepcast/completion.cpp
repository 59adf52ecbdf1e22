// stepcast completion: a script that completes verbs, flags, models and platforms in bash or zsh. Verbs and flags come
// from the tables that the command line itself is read by; names are asked for when they are completed.

#include <memory>
#include <string>

#include "stepcast/describe/megatron.h"

#include "verbs.h"

namespace stepcast::cli {
namespace {

struct CompletionOptions {
  std::string shell;
  CLI::App* app = nullptr;
};

std::string words_of_flags(const CLI::App& app) {
  std::string words;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  return words;
}

// One line of the `case` of a verb and of each of its subcommands.
std::string cases_of(const CLI::App& app, const std::string& path) {
  std::string text, words = words_of_flags(app);
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    words += sub->get_name() + " ";
    text += cases_of(*sub, path + " " + sub->get_name());
  }
  if (path == "predict") {
    for (const MegatronFlag& flag : megatron_flags())
      if (flag.use == MegatronFlagUse::understood) words += flag.name + " ";
  }
  return fmt::format("    '{}') words='{}' ;;\n", path, words) + text;
}

std::string script(const CLI::App& root, bool zsh) {
  std::string verbs, cases;
  for (const CLI::App* verb : root.get_subcommands([](const CLI::App*) { return true; })) {
    verbs += verb->get_name() + " ";
    cases += cases_of(*verb, verb->get_name());
  }
  return fmt::format(
      R"(# Completion of stepcast; put into a start-up file: source <(stepcast completion {shell})
{prefix}_stepcast() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} path=${{COMP_WORDS[1]}} words=
  if [ "$COMP_CWORD" -gt 2 ] && [ "$path" = calibrate ]; then path="$path ${{COMP_WORDS[2]}}"; fi
  case "$prev" in
    --model) words=$("${{COMP_WORDS[0]}}" models --names 2>/dev/null) ;;
    --platform|--recorded-on|platforms) words=$("${{COMP_WORDS[0]}}" platforms --names 2>/dev/null) ;;
  esac
  if [ -z "$words" ]; then
    if [ "$COMP_CWORD" -eq 1 ]; then words='{verbs}--help --version'; else
    case "$path" in
{cases}    esac; fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  case "$cur" in -*) ;; *) COMPREPLY+=($(compgen -f -- "$cur")) ;; esac
}}
complete -F _stepcast stepcast
)",
      fmt::arg("shell", zsh ? "zsh" : "bash"),
      fmt::arg("prefix", zsh ? "autoload -U +X bashcompinit && bashcompinit\n" : ""),
      fmt::arg("verbs", verbs), fmt::arg("cases", cases));
}

Result<int> run_completion(const CompletionOptions& options) {
  print("{}", script(*options.app->get_parent(), options.shell == "zsh"));
  return kSuccess;
}

}  // namespace

Verb completion_verb() {
  return {.name = "completion",
          .summary = "print a script that completes commands in bash or zsh",
          .declare =
              [](CLI::App& app) {
                auto options = std::make_shared<CompletionOptions>();
                options->app = &app;
                app.add_option("SHELL", options->shell, "bash or zsh")
                    ->required()
                    ->check(CLI::IsMember({"bash", "zsh"}));
                return [options] { return run_completion(*options); };
              },
          .reads_flags_of_all = true};
}

}  // namespace stepcast::cli

// stepcast completion: a script for bash, zsh or fish that completes verbs, flags, models and platforms; and the
// manual page. Verbs and flags come from the tables of the command line; names are queried during completion.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/version.h"
#include "stepcast/formats/megatron.h"

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

// One line of the shell's `case` for a verb, and for each subcommand.
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

std::vector<const CLI::App*> subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// The text in single quotes of fish.
std::string fish_word(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, text.find('\n'))) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return "'" + out + "'";
}

std::string fish_flags(const CLI::App& app, std::string_view where) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      std::string_view values = option->get_items_expected_max() == 0 ? "" : " -r";
      if (name == "model") values = " -x -a '(stepcast models --names 2>/dev/null)'";
      if (name == "platform" || name == "recorded-on")
        values = " -x -a '(stepcast platforms --names 2>/dev/null)'";
      text += fmt::format("complete -c stepcast -n '{}' -l {}{} -d {}\n", where, name, values,
                          fish_word(option->get_description()));
    }
  }
  return text;
}

std::string fish_script(const CLI::App& root) {
  std::string text =
      "# Completion of stepcast; stepcast completion fish > ~/.config/fish/completions/stepcast.fish\n";
  for (const CLI::App* verb : subcommands(root)) {
    text += fmt::format("complete -c stepcast -f -n __fish_use_subcommand -a {} -d {}\n", verb->get_name(),
                        fish_word(verb->get_description()));
    const std::string seen = "__fish_seen_subcommand_from " + verb->get_name();
    for (const CLI::App* sub : subcommands(*verb)) {
      text += fmt::format("complete -c stepcast -f -n '{}' -a {} -d {}\n", seen, sub->get_name(),
                          fish_word(sub->get_description()));
      text += fish_flags(*sub, fmt::format("{}; and __fish_seen_subcommand_from {}", seen, sub->get_name()));
    }
    text += fish_flags(*verb, seen);
  }
  return text;
}

// The text escaped for roff: backslashes, hyphens, and a dot at the start of a line.
std::string roff(std::string_view text) {
  std::string out;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') out += "\\e";
    if (c == '-') out += '\\';
    if (c != '\\') out += c;
    begins_line = c == '\n';
  }
  return out;
}

std::string man_flags(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    const std::string value = option->get_items_expected_max() == 0 ? "" : " " + option->get_type_name();
    text += fmt::format(".TP\n.B {}\n{}\n", roff(option->get_name(true, true) + value),
                        roff(option->get_description()));
  }
  return text;
}

std::string manual_page(const CLI::App& root) {
  std::string text = fmt::format(
      ".TH STEPCAST 1 \"\" \"stepcast {}\" \"User Commands\"\n.SH NAME\nstepcast \\- forecasts the time of a "
      "training iteration on many GPUs\n.SH SYNOPSIS\n.B stepcast\n.I VERB\n[flags]\n.SH DESCRIPTION\n{}\n"
      ".SH VERBS\n",
      version(), roff(root.get_description()));
  for (const CLI::App* verb : subcommands(root))
    text += fmt::format(".TP\n.B {}\n{}\n", roff(verb->get_name()), roff(verb->get_description()));
  const auto section = [&](const std::string& name, const CLI::App& app) {
    text += fmt::format(".SH \"{}\"\n{}\n{}", roff("stepcast " + name), roff(app.get_description()),
                        man_flags(app));
  };
  for (const CLI::App* verb : subcommands(root)) {
    section(verb->get_name(), *verb);
    for (const CLI::App* sub : subcommands(*verb)) section(verb->get_name() + " " + sub->get_name(), *sub);
  }
  return text + ".SH \"EXIT STATUS\"\n" + roff(root.get_footer()) + "\n";
}

Result<int> run_completion(const CompletionOptions& options) {
  const CLI::App& root = *options.app->get_parent();
  if (options.shell == "man")
    print("{}", manual_page(root));
  else if (options.shell == "fish")
    print("{}", fish_script(root));
  else
    print("{}", script(root, options.shell == "zsh"));
  return kSuccess;
}

}  // namespace

Verb completion_verb() {
  return {.name = "completion",
          .summary = "print a script that completes commands in bash, zsh or fish, or the manual page",
          .declare =
              [](CLI::App& app) {
                auto options = std::make_shared<CompletionOptions>();
                options->app = &app;
                app.add_option("SHELL", options->shell, "bash, zsh or fish; man: the manual page")
                    ->required()
                    ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
                return [options] { return run_completion(*options); };
              },
          .reads_flags_of_all = true};
}

}  // namespace stepcast::cli

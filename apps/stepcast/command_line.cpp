#include "command_line.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/nearest_word.h"
#include "stepcast/base/read_scope.h"
#include "stepcast/base/result.h"
#include "stepcast/base/stop.h"
#include "stepcast/describe/gpu_pools.h"
#include "stepcast/platform/platform_file.h"

#include "help.h"
#include "in_process.h"
#include "option_list.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

// Text from files or the command line may contain line breaks and terminal controls, and may be very long.
// Returns it as a readable single line.
std::string one_line(std::string_view text) {
  constexpr std::size_t kBegin = 1500, kEnd = 400;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::string line{text};
  if (line.size() > kBegin + kEnd) line = line.substr(0, kBegin) + " ... " + line.substr(line.size() - kEnd);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return without_controls(line);
}

thread_local const VerbSink* current_sink = nullptr;  // of the verb that run_verb() executes on this thread
// The command line of the action on this thread: as given, and as parsed.
thread_local std::span<const char* const> current_words, current_parsed;
thread_local std::string current_program = "stepcast";

struct Running {
  Running(std::span<const char* const> words, std::span<const char* const> parsed)
      : before(std::exchange(current_words, words)), parsed_before(std::exchange(current_parsed, parsed)) {}
  ~Running() {
    current_words = before;
    current_parsed = parsed_before;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  std::span<const char* const> before, parsed_before;
};

// `word` quoted for a POSIX shell.
std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain = "-_./,:=+@%^";
  const auto is_plain = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kPlain.find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return std::string{word};
  std::string quoted = "'";
  for (const char c : word) c == '\'' ? quoted += "'\\''" : quoted += c;
  return quoted + "'";
}

int fail(int code, std::string_view message) {
  if (current_sink != nullptr) {
    current_sink->outcome->error = one_line(message);
    return code;
  }
  std::fflush(stdout);
  fmt::print(stderr, "{} {}\n", error_prefix(current_program), one_line(message));
  return code;
}

// A requested verb and the action for its flags.
struct Declared {
  CLI::App* app;
  Action action;
};

// The requested verb with its subcommand: "predict", "calibrate kernels".
struct ChosenVerb {
  const CLI::App* app;
  std::string path;
};

constexpr char kHelpAll[] = "--help-all";

ChosenVerb chosen_verb(const CLI::App& root) {
  ChosenVerb chosen{&root, ""};
  for (auto next = root.get_subcommands(); !next.empty(); next = chosen.app->get_subcommands()) {
    chosen.app = next.front();
    chosen.path += " " + chosen.app->get_name();
  }
  return chosen;
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string unknown_word(const std::string& word, const ChosenVerb& verb, const CLI::App& root) {
  const bool is_flag = word.starts_with('-');
  if (verb.app == &root && is_flag) {
    return fmt::format("{}: flags follow the verb, as in `{} predict {}`", word.substr(0, 80),
                       root.get_name(), word.substr(0, 80));
  }
  if (verb.app == &root && (word == "capture" || word == "serve"))
    return fmt::format("`{}` is only in the Python wheel (`./dev wheel`, docs/{}.md)", word,
                       word == "serve" ? "serve" : "python");
  std::string text = fmt::format("unknown {} `{}`",
                                 is_flag             ? "flag"
                                 : verb.app == &root ? "verb"
                                                     : "word",
                                 word.substr(0, 80));
  const auto meant = nearest_word(word, names_of(*verb.app));
  return meant ? text + fmt::format("; did you mean `{}`?", *meant) : text;
}

// Rewrites errors of CLI11, such as "--x: a not in {b,c}" and "--x: Value 7 not in range 1 to 5", to "found
// ..., expected ...".
std::string in_our_words(std::string text) {
  const std::size_t colon = text.find(": ");
  if (colon == std::string::npos) return text;
  const std::string flag = text.substr(0, colon), rest = text.substr(colon + 2);
  constexpr std::string_view kNotIn = " not in {", kRange = " not in range ", kValue = "Value ";
  if (const std::size_t at = rest.rfind(kNotIn); at != std::string::npos && rest.ends_with('}')) {
    std::string list;
    for (const char c : rest.substr(at + kNotIn.size(), rest.size() - at - kNotIn.size() - 1)) {
      list += c;
      if (c == ',') list += ' ';
    }
    return fmt::format("{}: found `{}`, expected one of {}", flag,
                       rest.substr(0, std::min<std::size_t>(at, 80)), list);
  }
  if (const std::size_t at = rest.find(kRange); at != std::string::npos && rest.starts_with(kValue)) {
    return fmt::format("{}: found {}, expected {}", flag, rest.substr(kValue.size(), at - kValue.size()),
                       rest.substr(at + kRange.size()));
  }
  return text;
}

// The message for a wrong command line. CLI11's texts describe the problem, but not what to type.
std::string usage_error(const CLI::App& root, const CLI::ParseError& problem) {
  const ChosenVerb verb = chosen_verb(root);
  const std::string see = fmt::format(" (see `{}{} --help`)", root.get_name(), verb.path);
  const std::vector<std::string> unknown = verb.app->remaining();
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&problem) != nullptr;
  if (verb.app == &root) {
    const std::vector<std::string> words = root.remaining(true);
    if (!words.empty()) return unknown_word(words.front(), verb, root) + see;
    if (!is_extra) return "no verb given" + see;
  }
  if (is_extra) {
    // Words before the verb remain unparsed in the root.
    const std::vector<std::string> before = root.remaining();
    if (unknown.empty() && !before.empty()) return unknown_word(before.front(), {&root, ""}, root) + see;
    if (!unknown.empty()) return unknown_word(unknown.front(), verb, root) + see;
  }
  if (const auto kinds = verb.app->get_subcommands([](const CLI::App*) { return true; });
      !kinds.empty() && verb.app->get_subcommands().empty()) {
    if (!unknown.empty()) return unknown_word(unknown.front(), verb, root) + see;
    std::string names;
    for (const CLI::App* kind : kinds)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", kind->get_name());
    return fmt::format("{}: found nothing behind it, expected one of {}", verb.app->get_name(), names) + see;
  }
  std::string text = in_our_words(one_line(problem.what()));
  const std::size_t colon = text.find(": ");
  if (text.find("At Most 1 required but received") != std::string::npos && colon != std::string::npos) {
    text = fmt::format("{}: found several values, expected one", text.substr(0, colon));
  } else if (text.find("required") != std::string::npos && text.find("missing") != std::string::npos &&
             colon != std::string::npos) {
    text = fmt::format("{}: found nothing behind it, expected a value", text.substr(0, colon));
  }
  return text + see;
}

// The exit code for the result of a verb.
int code_of(const Result<int>& result) {
  if (result.ok()) return result.value();
  return fail(result.error().is_of_machine() ? kInternalError : kBadInput, result.error().message());
}

// The value of `flag` at position `i`, as "--flag value" or "--flag=value"; nothing if the word is another one.
std::optional<std::string> value_at(std::span<const char* const> words, std::size_t i,
                                    std::string_view flag) {
  const std::string_view word = words[i];
  if (word == flag) return i + 1 < words.size() ? std::optional{std::string{words[i + 1]}} : std::nullopt;
  if (word.starts_with(flag) && word.substr(flag.size()).starts_with('='))
    return std::string{word.substr(flag.size() + 1)};
  return std::nullopt;
}

// Rewrites --gpus with pools before flags are parsed, because the flag is a number otherwise:
//   --gpus 64xdgx-h100@east --zone east:price=2   is  --gpus 64 --platform dgx-h100 --gpu-hour-price 2
//   --gpus 64xh100+64xa100                        is  --pools 64xh100+64xa100, in a prediction
// Values that do not parse or contradict other flags are left for the verb to reject. `kept` owns the rewritten words.
std::vector<const char*> with_pools(std::span<const char* const> words, std::deque<std::string>& kept) {
  std::vector<const char*> out(words.begin(), words.end());
  if (words.size() < 2) return out;
  const std::string_view verb = words[1];
  const bool predicts = verb == "predict" || verb == "export";
  if (!predicts && verb != "plan" && verb != "shard") return out;
  std::vector<std::string> pools, zones;
  bool says_more = false, has_price = false, trains = false;
  out.resize(2);
  const auto put = [&](std::string word) { out.push_back(kept.emplace_back(std::move(word)).c_str()); };
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const auto taken = [&](std::string_view flag) {
      std::optional<std::string> value = value_at(words, i, flag);
      if (value && word == flag) ++i;
      return value;
    };
    for (const std::string_view flag : {"--platform", "--nodes"})
      says_more = says_more || value_at(words, i, flag);
    for (const std::string_view flag : {"--train-tokens", "--train-samples", "--train-iterations"})
      trains = trains || value_at(words, i, flag);
    has_price = has_price || value_at(words, i, "--gpu-hour-price");
    const std::optional<std::string> gpus = value_at(words, i, "--gpus");
    if (const auto value = predicts ? taken("--pools") : std::nullopt; value) {
      pools.push_back(*value);
    } else if (gpus && names_gpu_pools(*gpus)) {
      pools.push_back(*taken("--gpus"));
    } else if (const auto zone = taken("--zone")) {
      zones.push_back(*zone);
      // A flag may have several values.
      while (word == "--zone" && i + 1 < words.size() && words[i + 1][0] != '-')
        zones.emplace_back(words[++i]);
    } else {
      says_more = says_more || gpus;
      out.push_back(words[i]);
    }
  }
  if (pools.empty()) return {words.begin(), words.end()};
  const Result<Cluster> cluster = parse_cluster(pools.front(), zones);
  says_more = says_more || pools.size() > 1;
  const GpuPool* const one = cluster && cluster->pools.size() == 1 ? &cluster->pools.front() : nullptr;
  const GpuZone* const zone = one != nullptr ? cluster->zone_of(*one) : nullptr;
  const bool priced = trains && zone != nullptr && zone->price_per_gpu_hour;
  if (one != nullptr && !says_more && !(priced && has_price)) {
    put(fmt::format("--gpus={}", one->n_gpus));
    put(fmt::format("--platform={}", one->platform));
    if (one->power_limit_W) put(fmt::format("--power-limit={}W", *one->power_limit_W));
    if (priced) put(fmt::format("--gpu-hour-price={}", *zone->price_per_gpu_hour));
    return out;
  }
  for (const std::string& text : pools) put(fmt::format("--{}={}", predicts ? "pools" : "gpus", text));
  for (std::string& text : zones) put("--zone=" + text);
  return out;
}

// Declaring the hundreds of flags of all verbs takes longer than many answers. So only verbs that occur in
// the words are declared, and the verbs that these need.
std::vector<Declared> declare_verbs(CLI::App& app, const Program& program,
                                    std::span<const char* const> words) {
  const auto is_named = [&](const Verb& verb) {
    return std::ranges::any_of(words, [&](std::string_view word) { return word == verb.name; });
  };
  const bool all = (words.size() > 1 && words[1] == std::string_view{kHelpAll}) ||
                   std::ranges::any_of(program.verbs, [&](const Verb& verb) {
                     return verb.reads_flags_of_all && is_named(verb);
                   });
  std::vector<Declared> declared;
  for (const Verb& verb : program.verbs) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    declared.push_back({sub, verb.declare && (all || is_named(verb)) ? verb.declare(*sub) : Action{}});
  }
  return declared;
}

// Runs the requested verb with the flags in `parsed`.
int run_parsed(const CLI::App& app, std::span<const Declared> declared, std::span<const char* const> given,
               std::span<const char* const> parsed) {
  for (const Declared& verb : declared) {
    if (!verb.app->parsed()) continue;
    if (const Status pairs = check_pairs(*chosen_verb(app).app); !pairs.ok())
      return fail(kBadInput, pairs.error().message());
    const Running running{given, parsed};
    return code_of(verb.action());
  }
  return fail(kInternalError, "no verb ran");
}

int print_help(CLI::App& app, const Program& program, bool all) {
  CLI::App* verb = &app;
  std::string path;
  for (auto next = app.get_subcommands(); !next.empty(); next = verb->get_subcommands()) {
    verb = next.front();
    path += (path.empty() ? "" : " ") + verb->get_name();
  }
  const std::string text = help_text(app, *verb, path, program.help, all);
  const std::size_t columns = terminal_columns();
  print_text(help_in_columns(text, columns == kNoLimit ? kHelpColumns : columns));
  return kSuccess;
}

int parse_and_run(const Program& program, int argc, const char* const* argv) {
  if (argc <= 1 && !program.first_screen.empty()) {
    print_text(program.first_screen);
    return kSuccess;
  }
  std::deque<std::string> kept;
  const std::vector<const char*> words = with_pools({argv, static_cast<std::size_t>(argc)}, kept);
  const std::span<const char* const> given{argv, static_cast<std::size_t>(argc)};
  argv = words.data();
  argc = static_cast<int>(words.size());
  CLI::App app{program.description};
  app.name(program.name);
  app.set_version_flag("-V,--version", fmt::format("{} {}", program.name, version_text()));
  app.require_subcommand(1);
  app.set_help_all_flag(kHelpAll, "Print all flags and exit");
  app.failure_message([](const CLI::App*, const CLI::Error&) { return std::string{}; });

  const std::vector<Declared> declared = declare_verbs(app, program, {argv, static_cast<std::size_t>(argc)});
  app.footer(program.footer);  // not for the verbs, which get that of the program when they are declared
  make_strict(app);
  const auto is_verb = [&](std::string_view word) {  // or a flag
    return word.starts_with('-') ||
           std::ranges::any_of(declared, [&](const Declared& verb) { return verb.app->get_name() == word; });
  };
  // As in many other programs, `help` means --help.
  if (argc > 1 && std::string_view{argv[1]} == "help") {
    if (argc > 2 && !is_verb(argv[2]))
      return fail(kBadInput, unknown_word(argv[2], {&app, ""}, app) + " (see `" + program.name + " --help`)");
    std::vector<const char*> asked{argv[0]};
    asked.insert(asked.end(), argv + 2, argv + argc);
    asked.push_back("--help");
    return parse_and_run(program, static_cast<int>(asked.size()), asked.data());
  }

  const auto forwarding = std::ranges::find_if(
      program.verbs, [&](const Verb& verb) { return verb.forward && argc > 1 && verb.name == argv[1]; });
  if (forwarding != program.verbs.end())
    return code_of(forwarding->forward({argv + 1, static_cast<std::size_t>(argc - 1)}));

  // Without this check, --help and --version would hide the error for an unknown verb.
  if (argc > 1 && !is_verb(argv[1]))
    return fail(kBadInput, unknown_word(argv[1], {&app, ""}, app) + " (see `" + program.name + " --help`)");
  try {
    if (const Status lists = check_lists(app, {argv, static_cast<std::size_t>(argc)}); !lists.ok())
      return fail(kBadInput, lists.error().message());
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {  // --help and --version arrive as exceptions
    return print_help(app, program, false);
  } catch (const CLI::CallForAllHelp&) {
    return print_help(app, program, true);
  } catch (const CLI::Success& request) {
    print("{}\n", request.what());
    return kSuccess;
  } catch (const CLI::ParseError& problem) {
    return fail(kBadInput, usage_error(app, problem));
  }

  return run_parsed(app, declared, given, words);
}

// Flushes the buffered output. Returns `code`, or the code for output that could not be written.
int finish(int code) {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return code;
  if (code != kSuccess) return code;
  const std::string why = errno != 0 ? ": " + std::generic_category().message(errno) : std::string{};
  return fail(kInternalError, "could not write the whole result to standard output" + why);
}

}  // namespace

int run_command_line(const Program& program, int argc, const char* const* argv) {
  current_program = program.name;
  try {
    return finish(parse_and_run(program, argc, argv));
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: error: out of memory\n", program.name.c_str());
  } catch (const std::exception& bug) {
    if (std::ferror(stdout) != 0) return finish(kSuccess);  // how fmt reports write errors
    std::fprintf(stderr, "%s: error: internal error, please report it: %s\n", program.name.c_str(),
                 bug.what());
  }
  return kInternalError;
}

const VerbSink* verb_sink() { return current_sink; }

std::shared_ptr<const Session> session_for_question(const std::string& platform) {
  if (current_sink != nullptr && current_sink->listener->session)
    return current_sink->listener->session(platform);
  return std::make_shared<const Session>();
}

std::string given_command() {
  if (current_words.empty()) return {};
  return command_of(std::vector<std::string>(current_words.begin() + 1, current_words.end()));
}

std::vector<std::string> given_words() {
  if (current_parsed.empty()) return {};
  return {current_parsed.begin() + 1, current_parsed.end()};
}

std::string command_of(std::span<const std::string> words) {
  std::string command = current_program;
  for (const std::string& word : words) command += " " + shell_word(word);
  return command;
}

void offer_table(const std::string& name, const std::function<std::string()>& csv) {
  if (current_sink != nullptr && current_sink->listener->wants_tables)
    current_sink->outcome->tables.insert_or_assign(name, csv());
}

VerbOutcome run_verb(const Program& program, const std::vector<std::string>& words,
                     const VerbListener& listener) {
  VerbOutcome outcome;
  const VerbSink sink{&listener, &outcome};
  std::vector<const char*> arguments{program.name.c_str()};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const VerbSink* const before = std::exchange(current_sink, &sink);
  const StopScope scope{listener.stop.stop_possible() ? listener.stop : current_stop()};
  std::vector<std::filesystem::path> folders;
  if (listener.reads_only_in) {
    folders = *listener.reads_only_in;
    for (std::filesystem::path& shipped : platform_search_dirs()) folders.push_back(std::move(shipped));
    folders = canonical_folders(std::move(folders));
  }
  const ReadScope reads{listener.reads_only_in ? &folders : nullptr};
  try {
    outcome.code = parse_and_run(program, static_cast<int>(arguments.size()), arguments.data());
  } catch (const std::bad_alloc&) {
    outcome.code = fail(kInternalError, "out of memory");
  } catch (const std::exception& bug) {
    outcome.code = fail(kInternalError, fmt::format("internal error, please report it: {}", bug.what()));
  }
  // An incomplete answer is not printed.
  if (is_stop_requested()) outcome = {.code = kInternalError, .error = "interrupted"};
  current_sink = before;
  return outcome;
}

}  // namespace stepcast::cli

// Reads the command line, runs one verb, and turns what can go wrong into one line and an exit code.

#include <cerrno>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stepcast/base/result.h"
#include "stepcast/base/version.h"

#include "verbs.h"

namespace stepcast::cli {
namespace {

// Text from a file or from the command line may hold line breaks and terminal controls; an error is one line.
std::string one_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::string line{text};
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

int fail(int code, std::string_view message) {
  std::fflush(stdout);
  fmt::print(stderr, "stepcast: error: {}\n", one_line(message));
  return code;
}

// A verb that was asked for and the action that its flags led to.
struct Declared {
  CLI::App* app;
  Action action;
};

std::string usage_error(const CLI::App& app, const CLI::ParseError& problem) {
  const auto chosen = app.get_subcommands();
  if (!chosen.empty()) {
    return fmt::format("{} (see `stepcast {} --help`)", one_line(problem.what()), chosen.front()->get_name());
  }
  const auto unknown = app.remaining();
  const std::string what =
      unknown.empty() ? "no verb given" : fmt::format("unknown verb or flag `{}`", unknown.front());
  return what + " (see `stepcast --help`)";
}

int run(int argc, const char* const* argv) {
  CLI::App app{
      "stepcast forecasts the time of one training iteration of machine-learning jobs on many GPUs."};
  app.name("stepcast");
  app.set_version_flag("--version", fmt::format("stepcast {}", version()));
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error&) { return std::string{}; });

  std::vector<Declared> declared;
  for (Verb& verb : builtin_verbs()) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    declared.push_back({sub, verb.declare(*sub)});
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help and --version arrive as exceptions
    return app.exit(request);
  } catch (const CLI::ParseError& problem) {
    return fail(kBadInput, usage_error(app, problem));
  }

  for (const Declared& verb : declared) {
    if (!verb.app->parsed()) continue;
    const Result<int> result = verb.action();
    if (!result.ok()) {
      return fail(result.error().is_of_machine() ? kInternalError : kBadInput, result.error().message());
    }
    return result.value();
  }
  return fail(kInternalError, "no verb ran");
}

// What was printed stands in buffers until here. `code`, or that of a result that could not be written.
int finish(int code) {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return code;
  if (code != kSuccess) return code;
  const std::string why = errno != 0 ? ": " + std::generic_category().message(errno) : std::string{};
  return fail(kInternalError, "could not write all of the result to standard output" + why);
}

}  // namespace
}  // namespace stepcast::cli

int main(int argc, char** argv) {
  using stepcast::cli::kInternalError;
  try {
    return stepcast::cli::finish(stepcast::cli::run(argc, argv));
  } catch (const std::bad_alloc&) {
    std::fputs("stepcast: error: out of memory\n", stderr);
  } catch (const std::exception& bug) {
    if (std::ferror(stdout) != 0)
      return stepcast::cli::finish(stepcast::cli::kSuccess);  // fmt's way to say it
    std::fprintf(stderr, "stepcast: error: internal error, please report it: %s\n", bug.what());
  }
  return kInternalError;
}

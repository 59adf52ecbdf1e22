// Verbs that measure stepcast itself. They belong to the program stepcast-lab (lab/), which is executed
// instead of this one if it is in the same folder.

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <unistd.h>

#include "in_process.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

Result<int> run_laboratory(std::span<const char* const> words) {
  std::error_code failure;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failure);
  program.replace_filename("stepcast-lab");
  if (verb_sink() != nullptr || ::access(program.c_str(), X_OK) != 0) {
    return Error{
        fmt::format("`{}` measures stepcast itself, and is in the program stepcast-lab", words.front())}
        .found(verb_sink() != nullptr ? "a call from another program" : "none in the folder of this program")
        .advice("in a checkout, build and run it with `./dev lab`");
  }
  // Its messages should contain what the user typed, not its program name.
  std::vector<char*> arguments{const_cast<char*>("stepcast")};  // execv changes none of them
  for (const char* word : words) arguments.push_back(const_cast<char*>(word));
  arguments.push_back(nullptr);
  std::fflush(stdout);
  ::execv(program.c_str(), arguments.data());
  return Error{fmt::format("cannot run {}: {}", program.string(), std::generic_category().message(errno))}
      .of_machine();
}

}  // namespace

Verb validate_verb() { return {"validate", "score predictions against measured data", {}, run_laboratory}; }

Verb reference_verb() {
  return {"reference", "print a reference table: operators, presets, flags", {}, run_laboratory};
}

}  // namespace stepcast::cli

// The program `stepcast`: its verbs and the general text of its help.
#include <cstdio>
#include <string>
#include <vector>

#include "command_line.h"
#include "help.h"
#include "in_process.h"
#include "pipe_arguments.h"
#include "verbs.h"

namespace stepcast::cli {

Program stepcast_program() {
  return {.name = "stepcast",
          .description =
              "stepcast forecasts the time of one training iteration of machine-learning jobs on many GPUs.",
          .footer =
              "`stepcast VERB --help` explains a verb, `--help-all` all of its flags.\n"
              "Exit codes: 0 success; 1 the machine failed (full disk, no memory);\n"
              "2 the input cannot be used; 3 `predict --require-fit`: not enough memory;\n"
              "4 `compare --fail-above`: a larger difference.",
          .verbs =
              {
#define STEPCAST_VERB(name) name##_verb(),
#include "verbs.def"  // NOLINT(bugprone-suspicious-include): a list that is read twice
#undef STEPCAST_VERB
              },
          .help = stepcast_help(),
          .first_screen = first_screen()};
}

int run_command_line(int argc, const char* const* argv) {
  return run_command_line(stepcast_program(), argc, argv);
}

int run_program(int argc, const char* const* argv) {
  const Result<std::vector<std::string>> words = keep_pipe_arguments(argc, argv);
  if (!words) {
    std::fprintf(stderr, "stepcast: error: %s\n", words.error().message().c_str());
    return 2;
  }
  std::vector<const char*> arguments;
  for (const std::string& word : *words) arguments.push_back(word.c_str());
  arguments.push_back(nullptr);
  return run_command_line(argc, arguments.data());
}

VerbOutcome run_verb(const std::vector<std::string>& words, const VerbListener& listener) {
  return run_verb(stepcast_program(), words, listener);
}

}  // namespace stepcast::cli

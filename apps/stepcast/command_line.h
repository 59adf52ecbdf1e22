// Reads a command line, runs one verb, and turns what can go wrong into one line and an exit code.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace stepcast::cli {

struct Program;  // verbs.h

// `argv` as main() gets it. Writes to standard output and standard error; the exit code is one of verbs.h. May be called
// several times in one process (fuzz/command_line_fuzz.cpp does).
[[nodiscard]] int run_command_line(const Program& program, int argc, const char* const* argv);
// The same of stepcast_program().
[[nodiscard]] int run_command_line(int argc, const char* const* argv);
// What the program does: the same after pipes among the arguments were kept (pipe_arguments.h).
[[nodiscard]] int run_program(int argc, const char* const* argv);

// The command line that is being run, for a shell: "stepcast predict --model 'my model.json'". Empty outside of an action.
[[nodiscard]] std::string given_command();
// Words of such a command line behind the program, as they were parsed: "predict", "--model", "my model.json".
[[nodiscard]] std::vector<std::string> given_words();
// Words behind the program as a command line for a shell.
[[nodiscard]] std::string command_of(std::span<const std::string> words);

}  // namespace stepcast::cli

// Parses a command line, runs one verb, and converts errors into one line and an exit code.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace stepcast::cli {

struct Program;  // verbs.h

// `argv` as passed to main(). Writes to standard output and standard error and returns an exit code of
// verbs.h. May be called several times in a process (fuzz/command_line_fuzz.cpp does).
[[nodiscard]] int run_command_line(const Program& program, int argc, const char* const* argv);
// The same for stepcast_program().
[[nodiscard]] int run_command_line(int argc, const char* const* argv);
// The whole program: stores pipes among the arguments (pipe_arguments.h), then runs the command line.
[[nodiscard]] int run_program(int argc, const char* const* argv);

// The current command line, quoted for a shell: "stepcast predict --model 'my model.json'". Empty outside of an action.
[[nodiscard]] std::string given_command();
// The words of that command line after the program name, as parsed: "predict", "--model", "my model.json".
[[nodiscard]] std::vector<std::string> given_words();
// Words after the program name as a command line for a shell.
[[nodiscard]] std::string command_of(std::span<const std::string> words);

}  // namespace stepcast::cli

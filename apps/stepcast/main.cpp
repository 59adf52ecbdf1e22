#include <cstdio>
#include <string>
#include <vector>

#include "command_line.h"
#include "pipe_arguments.h"

int main(int argc, char** argv) {
  const stepcast::Result<std::vector<std::string>> words = stepcast::cli::keep_pipe_arguments(argc, argv);
  if (!words) {
    std::fprintf(stderr, "stepcast: error: %s\n", words.error().message().c_str());
    return 2;
  }
  std::vector<const char*> arguments;
  for (const std::string& word : *words) arguments.push_back(word.c_str());
  arguments.push_back(nullptr);
  return stepcast::cli::run_command_line(argc, arguments.data());
}

#include <cstdio>
#include <string>

#include "command_line.h"
#include "pipe_arguments.h"

int main(int argc, char** argv) {
  if (const std::string lost = stepcast::cli::keep_pipe_arguments(argc, argv); !lost.empty()) {
    std::fprintf(stderr, "stepcast: error: %s: what the pipe holds cannot be kept in a temporary file\n",
                 lost.c_str());
    return 2;
  }
  return stepcast::cli::run_command_line(argc, argv);
}

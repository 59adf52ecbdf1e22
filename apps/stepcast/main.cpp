#include "command_line.h"

int main(int argc, char** argv) { return stepcast::cli::run_program(argc, argv); }

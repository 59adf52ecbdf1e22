// Arguments that are pipes of the shell, `<(zcat run.log.gz)`, as files that can be read more than once.
#pragma once

#include <string>

namespace stepcast::cli {

// Replaces each read end of a pipe that an argument names (/dev/fd/N, /dev/stdin, also behind `--flag=`) by a nameless
// temporary file with what came out of it; the name stays. Returns the argument that could not be kept, or nothing.
// Ends that are written to, and named pipes, stay as they are.
[[nodiscard]] std::string keep_pipe_arguments(int argc, const char* const* argv);

}  // namespace stepcast::cli

// Arguments that are pipes, `<(zcat run.log.gz)`, as files that can be read more than once.
#pragma once

#include <string>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast::cli {

// The arguments, with each read end of a pipe that one names (/dev/fd/N, /dev/stdin, a named pipe, also behind `--flag=`)
// replaced by a nameless temporary file with what came out of it: descriptors keep their names, named pipes become
// /dev/fd/N. Ends that are written to stay as they are. Errors: a named pipe that nobody writes into for five seconds;
// a machine that cannot keep what came out.
[[nodiscard]] Result<std::vector<std::string>> keep_pipe_arguments(int argc, const char* const* argv);

}  // namespace stepcast::cli

// Stores arguments that are pipes, such as `<(zcat run.log.gz)`, in files, because files are read more than once.
#pragma once

#include <string>
#include <vector>

#include "stepcast/base/result.h"

namespace stepcast::cli {

// Returns the arguments with all read ends of pipes (/dev/fd/N, /dev/stdin, named pipes, also in `--flag=`)
// replaced by an unnamed temporary file with their content. Descriptors keep their names; named pipes become
// /dev/fd/N. Write ends are unchanged. Errors: a named pipe without data for five seconds, a full disk.
[[nodiscard]] Result<std::vector<std::string>> keep_pipe_arguments(int argc, const char* const* argv);

}  // namespace stepcast::cli

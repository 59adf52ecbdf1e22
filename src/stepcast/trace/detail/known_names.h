// Names that rank files need not spell out: of operators, calls, kernels and types of PyTorch 2.11 on an H100 (data/measured/) and of
// examples/dlrm_4gpu. A change is another version of the file (rank_file.h).
#pragma once

#include <string_view>

namespace stepcast::detail {

// A line each, behind a digit for its kind: operator 0, types 2, values 3, call 4, kernel 5.
[[nodiscard]] std::string_view known_names();

}  // namespace stepcast::detail

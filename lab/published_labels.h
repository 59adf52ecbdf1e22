// Which events of a trace are labels and no operators in the code that Lin et al. (TPDS 2024) published.
#pragma once

#include <string_view>

namespace stepcast {

// True for names that begin with one of its list: "##", "module::", "Optimizer.step", "c10d::", ... Names of modules
// of single workloads are left out; data loading is no operator.
[[nodiscard]] bool is_published_label(std::string_view name);

}  // namespace stepcast

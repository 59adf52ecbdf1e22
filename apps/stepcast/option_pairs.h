// Flags that say nothing without others, or that say the contrary of others: no verb takes them silently.
#pragma once

#include <CLI/CLI.hpp>

#include "stepcast/base/result.h"

namespace stepcast::cli {

// Looks at the flags that were given to the verb. Errors: a flag without its partner (--seed without --scenarios), --json
// beside another --format, two results into one file.
[[nodiscard]] Status check_pairs(const CLI::App& verb);

}  // namespace stepcast::cli

// What options take as values: numbers as people write them (base/spelled_number.h), and nothing that means nothing.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "stepcast/base/result.h"

namespace stepcast::cli {

// For numbers of which none or fewer make no sense.
[[nodiscard]] std::string above_zero(const std::string& text);

// "2024", "2024-05" or "2024-05-31": a day that there is.
[[nodiscard]] std::string check_date(const std::string& text);

// The software that --framework names.
[[nodiscard]] Result<Framework> framework_named(const std::string& text);

// "--gpus", "--global-batch-size": what the options of a verb are called.
[[nodiscard]] std::vector<std::string> flags_of(const CLI::App& app);

// Makes every option of `app` and of its subcommands refuse empty values, as of a shell variable that is not set, and
// read numbers as above. An option called --date takes dates alone.
void make_strict(CLI::App& app);

}  // namespace stepcast::cli

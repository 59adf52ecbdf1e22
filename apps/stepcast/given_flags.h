// The flags of a command line as a list, for code that changes some of them.
//
//   Flags flags = flags_in(given_words(), Question::traces);
//   std::erase_if(flags, [](const Flag& f) { return is_of_output(f, Question::traces); });
//   command_of(words_of(flags))
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/sweep/option_table.h"

namespace stepcast::cli {

// Smallest share of the step that is worth a suggestion; smaller savings are within the variation between
// steps of one run (assumed).
inline constexpr double kWorthSaying = 0.01;
inline constexpr std::size_t kMostActions = 5;

// A flag, by its shortest name, with its values.
struct Flag {
  std::string name;
  std::vector<std::string> values;
  friend bool operator==(const Flag&, const Flag&) = default;
};
using Flags = std::vector<Flag>;

// The flags in `words`; words before the first flag (the verb) are skipped.
[[nodiscard]] Flags flags_in(std::span<const std::string> words, Question question);
[[nodiscard]] std::vector<std::string> words_of(const Flags& flags);
[[nodiscard]] bool is_said(const Flags& flags, std::string_view name);
// Whether a flag concerns the output and not the step.
[[nodiscard]] bool is_of_output(const Flag& flag, Question question);
// Whether to compute suggestions. `wanted`: the value of --advice, "on" or "off"; empty: on for the command
// line, off for other programs, which ask for many jobs and wait for each.
[[nodiscard]] bool wants_advice(std::string_view wanted);

}  // namespace stepcast::cli

// The flags of a command line, for who says some of them otherwise.
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

// What to change is worth a line from this share of the step on: less is what steps of one run differ by (assumed).
inline constexpr double kWorthSaying = 0.01;
inline constexpr std::size_t kMostActions = 5;

// A flag with the words behind it, by the shortest of its names.
struct Flag {
  std::string name;
  std::vector<std::string> values;
  friend bool operator==(const Flag&, const Flag&) = default;
};
using Flags = std::vector<Flag>;

// Words in front of the first flag are left out: the verb.
[[nodiscard]] Flags flags_in(std::span<const std::string> words, Question question);
[[nodiscard]] std::vector<std::string> words_of(const Flags& flags);
[[nodiscard]] bool is_said(const Flags& flags, std::string_view name);
// What is asked of the answer, and not of the step.
[[nodiscard]] bool is_of_output(const Flag& flag, Question question);
// `wanted`: the value of --advice, "on", "off"; empty: on for a command line of its own. Programs ask for one job after the other,
// and wait for each.
[[nodiscard]] bool wants_advice(std::string_view wanted);

}  // namespace stepcast::cli

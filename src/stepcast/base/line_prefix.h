// Removes terminal colours and the prefixes that launchers, containers and system logs add, so that log lines
// are as the program wrote them. All log readers use this and therefore accept the same prefixes.
//
//   std::string buffer;
//   const PlainLine plain = plain_line("[1,3]<stdout>:\x1b[32mstep: 20", buffer);   // text "step: 20", rank 3
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast {

// A log line, split into its prefixes and its text.
struct PlainLine {
  std::string_view text;
  std::string_view prefix;  // all removed prefixes, unchanged; a time of day in them is the time of the line
  // From the last prefix with one: a rank, or the number at the end of a host or pod name.
  std::optional<std::int32_t> rank;
};

// Removes escape sequences (also without their escape character, "[31m") and up to four prefixes, by the
// table in line_prefix.cpp. The result is a view of `line`, or of `buffer` if there were escape sequences.
[[nodiscard]] PlainLine plain_line(std::string_view line, std::string& buffer);

}  // namespace stepcast

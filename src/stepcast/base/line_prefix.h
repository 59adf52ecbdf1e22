// Lines of logs as the program wrote them: without the colours of terminals, and without what launchers, containers and
// system logs put before every line. Every reader of logs uses this, so that all of them accept the same prefixes.
//
//   std::string buffer;
//   const PlainLine plain = plain_line("[1,3]<stdout>:\x1b[32mstep: 20", buffer);   // text "step: 20", rank 3
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast {

// A line and what was taken off it.
struct PlainLine {
  std::string_view text;
  std::string_view prefix;  // all prefixes, as they were; a time of day in them is that of the line
  std::optional<std::int32_t>
      rank;  // that the last prefix names: a rank, or the number at the end of a host or pod
};

// `line` without escape sequences, also those that lost their escape character ("[31m"), and without up to four prefixes
// (the table in line_prefix.cpp). The result lies in `line`, or in `buffer` where there were escape sequences.
[[nodiscard]] PlainLine plain_line(std::string_view line, std::string& buffer);

}  // namespace stepcast

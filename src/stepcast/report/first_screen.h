// Formats an answer for one screen of a terminal: the output unless --details is given.
//
//   title, subject         Layouts of gpt3-175b on 1,024 x A100
//   figures                Step time 12.3 ms (p10 11.9, p90 12.8); fitted
//   why, what to change    ReportDocument::first_screen
//   notes                  as many as there is room for
//   More with --details (5 more notes)
#pragma once

#include <cstddef>
#include <string>

#include "stepcast/report/document.h"

namespace stepcast {

// The screen that every terminal is assumed to have.
inline constexpr std::size_t kScreenColumns = 80, kScreenLines = 24;

// The first screen: at most kScreenLines lines of at most kScreenColumns characters (or `terminal_columns`,
// if less), followed by the sections that a flag asked for. Returns all of report_text() if that fits on a
// screen, or if the document has no first screen.
[[nodiscard]] std::string first_screen_text(const ReportDocument& document,
                                            std::size_t terminal_columns = kNoLimit);

// Breaks a command into lines of at most `columns` characters for a shell. Each line except the last ends in
// a backslash.
[[nodiscard]] std::string shell_lines(std::string_view command, std::size_t indent,
                                      std::size_t columns = kScreenColumns);

}  // namespace stepcast

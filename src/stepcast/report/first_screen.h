// One screen of an answer: what a terminal shows unless details are asked for.
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

inline constexpr std::size_t kScreenColumns = 80, kScreenLines = 24;

// At most kScreenLines lines of at most kScreenColumns characters, or of `terminal_columns` where those are fewer; then the
// sections that a flag asked for. All of report_text() where that fits, or where the document has no first screen.
[[nodiscard]] std::string first_screen_text(const ReportDocument& document,
                                            std::size_t terminal_columns = kNoLimit);

// Flags for a shell on lines of at most `columns` characters, each but the last ends in a backslash.
[[nodiscard]] std::string shell_lines(std::string_view command, std::size_t indent,
                                      std::size_t columns = kScreenColumns);

}  // namespace stepcast

#include "verbs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

#include "stepcast/base/one_line.h"
#include "stepcast/base/version.h"
#include "stepcast/report/document.h"

#include "commit.h"
#include "in_process.h"

namespace stepcast::cli {

// Replaces control characters except line breaks and tabs by `?`: single bytes, and the two-byte UTF-8 ones
// (U+0080 to U+009F).
std::string without_controls(std::string_view text) {
  // Fast path: most texts have none.
  const auto first = std::ranges::find_if(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F || byte == 0xC2;
  });
  std::string out{text};
  for (auto i = static_cast<std::size_t>(first - text.begin()); i < out.size(); ++i) {
    const auto at = [&](std::size_t k) { return k < out.size() ? static_cast<unsigned char>(out[k]) : 0U; };
    if (at(i) == 0xC2 && at(i + 1) >= 0x80 && at(i + 1) <= 0x9F)
      out.replace(i, 2, "?");
    else if ((at(i) < 0x20 && out[i] != '\n' && out[i] != '\t') || at(i) == 0x7F)
      out[i] = '?';
  }
  return out;
}

namespace {

// Whether the descriptor is a terminal with colours, and NO_COLOR is not set (no-color.org).
bool shows_colours(int descriptor) {
  const char* const off = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  return (off == nullptr || *off == '\0') && kind != nullptr && std::string_view{kind} != "dumb" &&
         ::isatty(descriptor) != 0;
}

constexpr std::string_view kBold = "\033[1m", kRed = "\033[1;31m", kGreen = "\033[32m", kFaint = "\033[2m",
                           kPlain = "\033[0m";
struct Coloured {
  std::string_view begin, code;
};
// Beginnings of lines that are coloured.
constexpr std::array kColoured{Coloured{"Step time ", kBold}, Coloured{"Memory: fits", kGreen},
                               Coloured{"Memory: does not fit", kRed}, Coloured{"note: ", kFaint}};

// The column where a broken line of --help continues: after the flag or verb and its blanks, else where it begins.
std::size_t hanging_indent(std::string_view line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t blanks = line.find("  ", begin);
  if (begin == 0 || blanks == std::string_view::npos) return begin;
  return std::min(line.find_first_not_of(' ', blanks), line.size());
}

}  // namespace

std::string help_in_columns(std::string_view help, std::size_t columns) {
  std::string out;
  while (!help.empty()) {
    std::string_view line = help.substr(0, help.find('\n'));
    help.remove_prefix(std::min(line.size() + 1, help.size()));
    const bool is_command =
        line.substr(std::min(line.find_first_not_of(' '), line.size())).starts_with("stepcast ");
    const std::size_t indent = is_command ? 4 : hanging_indent(line), more = is_command ? 2 : 0;  // for ` \`
    std::size_t before = 0;  // leading blanks of this part of the line
    while (before + line.size() > columns) {
      const std::size_t room = columns > before + more ? columns - before - more : 0;
      const std::size_t first = before == 0 ? indent + 1 : 1;  // an earlier cut would leave an empty line
      std::size_t cut = line.rfind(' ', room);
      if (cut == std::string_view::npos || cut < first) cut = line.find(' ', std::max(room, first));
      if (cut == std::string_view::npos) break;  // a single word
      out.append(line.substr(0, cut)).append(is_command ? " \\\n" : "\n").append(indent, ' ');
      line.remove_prefix(cut + 1);
      before = indent;
    }
    out.append(line).append("\n");
  }
  return out;
}

std::string coloured(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const auto found =
        std::ranges::find_if(kColoured, [&](const Coloured& one) { return line.starts_with(one.begin); });
    if (found == kColoured.end())
      out += line;
    else
      out.append(found->code).append(line).append(kPlain);
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string error_prefix(std::string_view program) {
  return shows_colours(STDERR_FILENO) ? fmt::format("{}: {}error:{}", program, kRed, kPlain)
                                      : fmt::format("{}: error:", program);
}

void print_text(std::string_view text) {
  const std::string safe = without_controls(text);
  if (const VerbSink* sink = verb_sink()) {
    sink->outcome->output += safe;
    return;
  }
  const std::string shown = shows_colours(STDOUT_FILENO) ? coloured(safe) : safe;
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

std::string version_text() {
  return commit().empty() ? std::string{version()} : fmt::format("{} ({})", version(), commit());
}

std::size_t terminal_columns() {
  winsize window{};
  const bool is_known = verb_sink() == nullptr && ::isatty(STDOUT_FILENO) != 0 &&
                        ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
  return is_known ? window.ws_col : kNoLimit;
}

void print_timeline_note(std::string_view file) {
  print("\nTimeline written to {}: open it at https://ui.perfetto.dev\n", in_one_line(file));
}

Verb version_verb() {
  return {"version", "print the version", [](CLI::App&) {
            return [] {
              print("stepcast {}\n", version_text());
              return Result<int>{kSuccess};
            };
          }};
}

}  // namespace stepcast::cli

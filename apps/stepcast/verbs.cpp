#include "verbs.h"

#include <cstddef>
#include <cstdio>

#include <sys/ioctl.h>
#include <unistd.h>

#include "stepcast/base/one_line.h"
#include "stepcast/base/version.h"
#include "stepcast/report/document.h"

#include "commit.h"
#include "in_process.h"

namespace stepcast::cli {

// Control characters but line breaks and tabs become `?`: those of one byte and the two-byte ones of UTF-8
// (U+0080 to U+009F).
std::string without_controls(std::string_view text) {
  std::string out{text};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto at = [&](std::size_t k) { return k < out.size() ? static_cast<unsigned char>(out[k]) : 0U; };
    if (at(i) == 0xC2 && at(i + 1) >= 0x80 && at(i + 1) <= 0x9F)
      out.replace(i, 2, "?");
    else if ((at(i) < 0x20 && out[i] != '\n' && out[i] != '\t') || at(i) == 0x7F)
      out[i] = '?';
  }
  return out;
}

void print_text(std::string_view text) {
  const std::string safe = without_controls(text);
  if (const VerbSink* sink = verb_sink()) {
    sink->outcome->output += safe;
    return;
  }
  std::fwrite(safe.data(), 1, safe.size(), stdout);
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

// The first screen is built from ReportDocument::first_screen, from top to bottom. Blocks get the lines that
// title, figures and reason leave, and notes get what remains after that. If the whole document fits on a
// screen, it is printed instead.
#include "stepcast/report/first_screen.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"

namespace stepcast {
namespace {

constexpr std::size_t kNoteLines = 2;  // lines of one note; a longer note is cut and ends in ".."

std::size_t n_lines(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

// Whether a text fits on a screen without wrapping.
bool fits_screen(std::string_view text, std::size_t columns) {
  if (n_lines(text) > kScreenLines) return false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (width_of(text.substr(at, end - at)) > columns) return false;
    at = end + 1;
  }
  return true;
}

// Wraps a text at `columns` characters. `opening` is in front of the first line; further lines are indented
// as far.
std::string screen_lines(std::string_view opening, std::string_view text, std::size_t columns) {
  std::string out;
  for (const std::string_view line : wrapped_lines(text, columns - std::min(columns / 2, opening.size()))) {
    out += out.empty() ? std::string{opening} : std::string(opening.size(), ' ');
    out.append(line).append("\n");
  }
  return out;
}

// The width of each column, including its heading.
std::vector<std::size_t> widths_of(const ReportTable& table) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const std::string& heading = table.columns[c].heading;
    std::size_t width = table.columns[c].least_width;
    for (std::size_t at = 0; at <= heading.size();) {
      const std::size_t end = std::min(heading.find('\n', at), heading.size());
      width = std::max(width, width_of(std::string_view{heading}.substr(at, end - at)));
      at = end + 1;
    }
    for (const auto& [cells] : table.rows)
      if (c < cells.size()) width = std::max(width, width_of(cells[c].text));
    widths.push_back(width);
  }
  return widths;
}

// The columns and rows that the first screen shows. If a row is too long, the widest column of words is cut.
ReportTable for_screen(const ReportTable& table, std::size_t columns) {
  ReportTable out = table;
  if (!table.on_first_screen.empty()) {
    for (std::size_t c = table.columns.size(); c-- > 0;) {
      if (std::ranges::find(table.on_first_screen, table.columns[c].heading) != table.on_first_screen.end())
        continue;
      const auto at = static_cast<std::ptrdiff_t>(c);
      out.columns.erase(out.columns.begin() + at);
      for (auto& [cells] : out.rows)
        if (c < cells.size()) cells.erase(cells.begin() + at);
    }
  }
  if (out.rows.size() > out.most) out.rows.resize(out.most);
  out.rules.clear();
  const std::vector<std::size_t> widths = widths_of(out);
  std::size_t sum = out.indent + 2 * (widths.size() - 1);
  for (const std::size_t width : widths) sum += width;
  std::size_t widest = 0;
  // The widest column of words is the one that may be cut; numbers are never cut.
  for (std::size_t c = 0; c < widths.size(); ++c)
    if (!out.columns[c].is_number && (out.columns[widest].is_number || widths[c] > widths[widest]))
      widest = c;
  if (sum <= columns || out.columns[widest].is_number) return out;
  constexpr std::size_t kLeast = 8;
  const std::size_t room =
      widths[widest] - std::min(widths[widest] - std::min(widths[widest], kLeast), sum - columns);
  for (auto& [cells] : out.rows)
    if (widest < cells.size()) cells[widest].text = shorten(std::move(cells[widest].text), room);
  return out;
}

// The text of each kind of block on the first screen. Pictures are left out.
struct ScreenBlock {
  std::size_t columns;

  std::string operator()(const ReportText& block) const {
    std::string text;
    for (std::size_t at = 0; at < block.text.size();) {
      const std::size_t end = std::min(block.text.find('\n', at), block.text.size());
      text += screen_lines({}, std::string_view{block.text}.substr(at, end - at), columns);
      at = end + 1;
    }
    return text;
  }
  std::string operator()(const ReportList& block) const {
    std::string text;
    std::size_t n = 0;
    for (const std::string& item : block.items) text += screen_lines(fmt::format("{}. ", ++n), item, columns);
    return text;
  }
  std::string operator()(const ReportTable& block) const {
    if (block.rows.empty()) return {};
    std::string text = report_text(for_screen(block, columns));
    const std::size_t of = std::max(block.rows.size(), block.of), n = std::min(block.rows.size(), block.most);
    if (n < of) text += fmt::format("  and {} more\n", table_count(of - n));
    return text;
  }
  std::string operator()(const ReportFigure& /*picture*/) const { return {}; }
  std::string operator()(const ReportCode& block) const {
    return fmt::format("{}:\n{}", block.label, shell_lines(block.text, 2, columns));
  }
  std::string operator()(const TerminalText& block) const { return block.text; }
};

// One line per figure: "Step time 12.3 ms (p10 11.9, p90 12.8); fitted". The source is left out if the line
// is too long.
std::string figures_text(std::span<const KeyFigure> figures, std::size_t columns) {
  std::string text;
  for (const KeyFigure& figure : figures) {
    std::string line = fmt::format("{} {}", figure.label, figure.value);
    if (!figure.detail.empty()) line += fmt::format(" ({})", figure.detail);
    if (const std::string source = "; " + figure.source;
        !figure.source.empty() && width_of(line) + width_of(source) <= columns)
      line += source;
    text += shorten(std::move(line), columns) + "\n";
  }
  return text;
}

// The blocks behind an empty line. Tables and lists lose rows until the text has fewer than `room` lines. `left`
// receives the number of items that lists lose; tables say it themselves.
std::string blocks_text(const FirstScreen& screen, std::size_t columns, std::size_t room, std::size_t& left) {
  for (std::size_t most = kScreenLines;; --most) {
    std::string text;
    left = 0;
    for (const ReportBlock& block : screen.blocks) {
      ReportBlock shown = block;
      if (auto* table = std::get_if<ReportTable>(&shown.content)) table->most = std::min(table->most, most);
      if (auto* list = std::get_if<ReportList>(&shown.content)) {
        const std::size_t n_items = list->items.size();
        list->items.resize(std::min({n_items, most, list->most}));
        left += n_items - list->items.size();
      }
      text += std::visit(ScreenBlock{columns}, shown.content);
    }
    if (text.empty()) return text;
    if (n_lines(text) < room || most == 1) return "\n" + text;
  }
}

// "1 more note"; empty if there are none.
std::string more_text(std::size_t n, std::string_view what) {
  return n == 0 ? std::string{} : fmt::format("{} more {}{}", n, what, n == 1 ? "" : "s");
}

// The notes that fit into `room` lines, and the last line of the screen, which refers to --details.
// `suggestions_left`: those in lists that had no room.
std::string notes_text(const std::vector<std::string>& notes, std::size_t columns, std::size_t room,
                       std::size_t suggestions_left) {
  constexpr std::string_view kOpening = "note: ";
  std::string text;
  std::size_t shown = 0;
  for (const std::string& note : notes) {
    std::string one = screen_lines(
        kOpening, shorten(note, kNoteLines * (columns - kOpening.size()) - kNoteLines * 8), columns);
    if (n_lines(text) + n_lines(one) > room) break;
    text += one;
    ++shown;
  }
  // The last line says how many suggestions and notes are missing.
  std::string left = more_text(suggestions_left, "suggestion");
  const std::string notes_left = more_text(notes.size() - shown, "note");
  if (!left.empty() && !notes_left.empty()) left += ", ";
  left += notes_left;
  return text + "More with --details" + (left.empty() ? "" : " (" + left + ")") + "\n";
}

}  // namespace

std::string shell_lines(std::string_view command, std::size_t indent, std::size_t columns) {
  constexpr std::string_view kGoesOn = " \\";
  std::string text;
  std::string line(indent, ' ');
  const auto end_line = [&](std::string_view ending) {
    text.append(line).append(ending).append("\n");
    line.assign(indent + 2, ' ');
  };
  bool is_first = true;
  while (!command.empty()) {
    // A flag and its values stay on one line.
    std::size_t end = command.find(" -");
    const std::string_view flag = command.substr(0, end);
    if (!is_first && width_of(line) + 1 + width_of(flag) + kGoesOn.size() > columns) {
      end_line(kGoesOn);
      is_first = true;
    }
    line.append(is_first ? "" : " ").append(flag);
    is_first = false;
    command.remove_prefix(end == std::string_view::npos ? command.size() : end + 1);
  }
  end_line("");
  return text;
}

std::string first_screen_text(const ReportDocument& document, std::size_t terminal_columns) {
  std::string all = report_text(document, terminal_columns);
  const std::size_t columns = std::min(terminal_columns, kScreenColumns);
  if (!document.first_screen || fits_screen(all, columns)) return all;
  const FirstScreen& screen = *document.first_screen;
  std::string text;
  if (screen.shows_title) text += screen_lines({}, document.title, columns);
  for (const std::string& line : document.subject) text += screen_lines({}, line, columns);
  const std::string& why = screen.why.empty() ? document.verdict : screen.why;
  const std::span<const KeyFigure> figures{document.figures.data(),
                                           std::min(screen.most_figures, document.figures.size())};
  for (const std::string& part :
       {figures_text(figures, columns), why.empty() ? std::string{} : screen_lines({}, why, columns)})
    if (!part.empty()) text += "\n" + part;
  constexpr std::size_t kEnd = 2;  // lines below the blocks: an empty one and the last one
  std::size_t suggestions_left = 0;
  text += blocks_text(screen, columns, kScreenLines - std::min(kScreenLines, n_lines(text) + kEnd),
                      suggestions_left);
  text += "\n";
  const std::size_t taken = n_lines(text) + 1;
  text += notes_text(screen.notes, columns, kScreenLines - std::min(kScreenLines, taken), suggestions_left);
  ReportDocument asked;
  for (const ReportSection& section : document.sections)
    if (section.is_asked) asked.sections.push_back(section);
  const std::string more = report_text(asked, terminal_columns);
  return text + (more.empty() || more.starts_with('\n') ? "" : "\n") + more;
}

}  // namespace stepcast

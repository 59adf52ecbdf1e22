// A document becomes text in two ways. Markdown: BlockText and section_text(). Terminal: TerminalBlock, with
// tables laid out by TerminalTable. Both take their blocks from blocks_on(), which drops what is not shown
// there.
#include "stepcast/report/document.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/utf8.h"
#include "stepcast/report/cell_text.h"

namespace stepcast {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// A code block. Its fence is longer than any fence inside the text.
std::string code_text(const ReportCode& code) {
  std::string fence = "```";
  while (code.text.find(fence) != std::string::npos) fence += '`';
  return fmt::format("{}{}\n{}{}{}\n",
                     code.label.empty() ? std::string{} : escape_markdown(code.label) + ":\n\n", fence,
                     code.text, code.text.ends_with('\n') ? "" : "\n", fence);
}

// The Markdown of each kind of block. Pictures and lines for terminals have none.
struct BlockText {
  std::string operator()(const ReportText& block) const { return escape_markdown(block.text) + "\n"; }
  std::string operator()(const ReportList& block) const {
    std::string text;
    for (const std::string& item : block.items) text += "- " + escape_markdown(item) + "\n";
    return text;
  }
  std::string operator()(const ReportTable& block) const { return report_markdown(block); }
  std::string operator()(const ReportFigure& /*picture*/) const { return {}; }
  std::string operator()(const ReportCode& block) const { return code_text(block); }
  std::string operator()(const TerminalText& /*lines*/) const { return {}; }
};

// Splits a text at line breaks. A text without any is one line.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(end + 1)) {
    end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
  }
  return lines;
}

// A paragraph behind `opening`, with further lines indented as far. Lines with flags are not wrapped, so that
// they can be copied.
std::string paragraph(std::string_view opening, std::string_view text, std::size_t most) {
  const std::size_t room = most - std::min(most, width_of(opening));
  std::string out;
  for (const std::string_view line : lines_of(text)) {
    const bool stays = line.find(" --") != std::string_view::npos;
    for (const std::string_view part :
         wrapped_lines(line, stays ? kNoLimit : std::max<std::size_t>(room, 20))) {
      // Lines that the text itself separates bring their own indentation.
      const std::size_t blanks = part.data() == line.data() ? 0 : width_of(opening);
      out += fmt::format("{}{}\n", out.empty() ? std::string{opening} : std::string(blanks, ' '), part);
    }
  }
  return out;
}

// Lays out a table for a terminal. Columns are as wide as their widest cell, and lines do not end in blanks.
// If the table is too wide, words are wrapped inside their columns first. Columns that still do not fit are
// printed below as a second band, which repeats the first column.
class TerminalTable {
 public:
  TerminalTable(const ReportTable& table, std::size_t most) : table_(table) {
    // Columns of words are not made narrower than this.
    constexpr std::size_t kLeastOfWords = 16;
    std::vector<std::size_t> least;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      std::size_t heading = table.columns[c].least_width, width = 0, word = kLeastOfWords;
      for (const std::string_view line : lines_of(table.columns[c].heading))
        heading = std::max(heading, width_of(line));
      for (std::size_t r = 0; r < table.rows.size(); ++r) {
        width = std::max(width, width_of(cell(r, c)));
        if (most == kNoLimit || table.columns[c].is_number) continue;
        for (const std::string_view part : wrapped_lines(cell(r, c), 1))
          word = std::max(word, width_of(part));
      }
      widths_.push_back(std::max(width, heading));
      least.push_back(table.columns[c].is_number ? widths_[c]
                                                 : std::min(widths_[c], std::max(word, heading)));
    }
    if (most != kNoLimit) narrow(least, most);
    // Distribute the columns over bands, from left to right.
    for (const std::size_t c : all_columns()) {
      const bool fits = !bands_.empty() && [&] {
        std::vector<std::size_t> band = bands_.back();
        band.push_back(c);
        return width_of_line(band) <= most;
      }();
      if (!fits) bands_.push_back(bands_.empty() ? std::vector<std::size_t>{} : std::vector<std::size_t>{0});
      bands_.back().push_back(c);
    }
  }

  std::string text() {
    for (const std::vector<std::size_t>& band : bands_) {
      if (&band != &bands_.front()) text_ += '\n';
      add_band(band);
    }
    return std::move(text_);
  }

 private:
  using Lines = std::vector<std::string_view>;

  // The numbers of all columns.
  [[nodiscard]] std::vector<std::size_t> all_columns() const {
    std::vector<std::size_t> all(widths_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }
  // The width of a line with the columns of a band, with two blanks between columns.
  [[nodiscard]] std::size_t width_of_line(const std::vector<std::size_t>& band) const {
    std::size_t width = table_.indent + 2 * (band.size() - 1);
    for (const std::size_t c : band) width += widths_[c];
    return width;
  }
  // The text of a cell; empty if the row has fewer cells.
  [[nodiscard]] std::string_view cell(std::size_t r, std::size_t c) const {
    return c < table_.rows[r].cells.size() ? std::string_view{table_.rows[r].cells[c].text}
                                           : std::string_view{};
  }

  // Makes columns narrower, the widest column of words first, down to `least`. If even that does not fit in
  // one line, columns keep at least half a line and the table is split into bands.
  void narrow(std::vector<std::size_t> least, std::size_t most) {
    std::vector<std::size_t> wide = std::exchange(widths_, least);
    const bool is_enough = width_of_line(all_columns()) <= most;
    widths_ = std::move(wide);
    for (std::size_t c = 0; c < least.size() && !is_enough; ++c)
      least[c] = std::max(least[c], std::min(widths_[c], most / 2));
    for (std::size_t width; (width = width_of_line(all_columns())) > most;) {
      std::size_t widest = 0;
      for (std::size_t c = 1; c < widths_.size(); ++c)
        if (widths_[c] - least[c] > widths_[widest] - least[widest]) widest = c;
      if (widths_[widest] == least[widest]) return;
      widths_[widest] -= std::min(widths_[widest] - least[widest], width - most);
    }
  }

  // Prints the headings and rows of one band.
  void add_band(const std::vector<std::size_t>& band) {
    if (!std::ranges::all_of(table_.columns, &std::string::empty, &ReportColumn::heading))
      add_row(band, true, [&](std::size_t c) { return lines_of(table_.columns[c].heading); });
    for (std::size_t r = 0; r < table_.rows.size(); ++r) {
      if (std::ranges::find(table_.rules, r) != table_.rules.end()) {
        const std::string dashes(*std::ranges::max_element(widths_), '-');
        add_row(band, false,
                [&](std::size_t c) { return Lines{std::string_view{dashes}.substr(0, widths_[c])}; });
      }
      add_row(band, false, [&](std::size_t c) { return wrapped_lines(cell(r, c), widths_[c]); });
    }
  }

  // Prints one row, which may take several lines. Headings are aligned at the bottom, cells at the top.
  void add_row(const std::vector<std::size_t>& band, bool at_bottom, const auto& lines_in) {
    std::vector<Lines> cells;
    std::size_t height = 0;
    for (const std::size_t c : band) height = std::max(height, cells.emplace_back(lines_in(c)).size());
    for (std::size_t l = 0; l < height; ++l) {
      std::string line(table_.indent, ' ');
      for (std::size_t i = 0; i < band.size(); ++i) {
        const std::size_t missing = at_bottom ? height - cells[i].size() : 0;
        const bool is_there = l >= missing && l - missing < cells[i].size();
        const std::string_view text = is_there ? cells[i][l - missing] : std::string_view{};
        const std::string padding(widths_[band[i]] - std::min(widths_[band[i]], width_of(text)), ' ');
        if (i > 0) line += "  ";
        if (table_.columns[band[i]].is_number) line += padding;
        line += text;
        if (!table_.columns[band[i]].is_number) line += padding;
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text_ += line + '\n';
    }
  }

  const ReportTable& table_;
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::size_t>> bands_;  // columns that are printed in the same lines
  std::string text_;
};

// The terminal text of each kind of block.
struct TerminalBlock {
  std::size_t columns;

  std::string operator()(const ReportText& block) const {
    return paragraph(std::string(block.indent, ' '), block.text, columns);
  }
  std::string operator()(const ReportList& block) const {
    std::string text;
    for (const std::string& item : block.items) text += paragraph(block.bullet, item, columns);
    return text;
  }
  std::string operator()(const ReportTable& block) const { return report_text(block, columns); }
  std::string operator()(const ReportFigure& /*picture*/) const { return {}; }
  std::string operator()(const ReportCode& block) const {
    return block.label.empty() ? block.text : fmt::format("  {}:\n{}", block.label, block.text);
  }
  // Wraps long sentences. Lines with flags, files or columns (two blanks) are not changed.
  std::string operator()(const TerminalText& block) const {
    if (columns == kNoLimit) return block.text;
    std::string text;
    for (std::size_t at = 0; at < block.text.size();) {
      const std::size_t end = std::min(block.text.find('\n', at), block.text.size() - 1) + 1;
      const std::string line = block.text.substr(at, end - at);
      const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
      const bool is_sentence = line.size() > columns + 1 && line.find("--") == std::string::npos &&
                               line.find('/') == std::string::npos &&
                               line.find("  ", first) == std::string::npos;
      text += is_sentence && line.ends_with('\n')
                  ? paragraph(std::string(first, ' '), line.substr(first, line.size() - first - 1), columns)
                  : line;
      at = end;
    }
    return text;
  }
};

// The heading on one line; a hyphen at a line break is removed: "compu-\ntation" becomes "computation".
std::string on_one_line(std::string heading) {
  for (std::size_t at = 0; (at = heading.find('\n', at)) != std::string::npos;)
    if (at > 0 && heading[at - 1] == '-')
      heading.erase(at - 1, 2);
    else
      heading[at] = ' ';
  return heading;
}

// The columns and rows of a table that are shown on a terminal or a page, with a caption for what is left
// out.
ReportTable table_on(const ReportTable& table, Shown on) {
  ReportTable out = table;
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    if (on == Shown::page) out.columns[c].heading = on_one_line(std::move(out.columns[c].heading));
    if (is_shown(table.columns[c].shown, on)) continue;
    const auto at = static_cast<std::ptrdiff_t>(c);
    out.columns.erase(out.columns.begin() + at);
    for (auto& [cells] : out.rows)
      if (c < cells.size()) cells.erase(cells.begin() + at);
  }
  const std::size_t most = on == Shown::terminal ? std::min(table.most, table.most_in_terminal) : table.most;
  const std::size_t n_rows = table.rows.size(), of = std::max(n_rows, table.of);
  if (n_rows > most) out.rows.resize(most);
  if (on == Shown::page && out.rows.size() < of)
    out.caption = fmt::format("{} of {} shown{}{}", out.rows.size(), table_count(of),
                              table.caption.empty() ? "" : ". ", table.caption);
  else if (out.rows.size() < of)
    out.caption = fmt::format("and {} more", table_count(of - out.rows.size()));
  for (std::size_t c = 0; c < out.columns.size() && on == Shown::terminal; ++c) {
    for (auto& [cells] : out.rows)
      if (c < cells.size()) cells[c].text = shorten(std::move(cells[c].text), out.columns[c].most_width);
  }
  return out;
}

// The Markdown of a section. Folded sections become <details>. Empty if nothing is shown.
std::string section_text(const ReportSection& section) {
  std::string body;
  for (const ReportBlock& block : blocks_on(section, Shown::page)) {
    const std::string part = std::visit(BlockText{}, block.content);
    if (!part.empty()) body += "\n" + part;
  }
  if (body.empty()) return {};
  return section.folded ? fmt::format("\n<details><summary>{}</summary>\n{}\n</details>\n",
                                      escape_markup(section.title), body)
                        : fmt::format("\n### {}\n{}", escape_markdown(section.title), body);
}

}  // namespace

std::vector<std::string_view> wrapped_lines(std::string_view text, std::size_t most) {
  constexpr std::size_t kNone = std::string_view::npos;
  std::vector<std::string_view> lines;
  while (width_of(text) > most) {
    std::size_t end = text.find(' ', text.find_first_not_of(' '));
    for (std::size_t at = end; at != kNone && width_of(text.substr(0, at)) <= most;
         at = text.find(' ', at + 1))
      end = at;
    if (end == kNone) break;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
  }
  lines.push_back(text);
  return lines;
}

ReportRow& ReportRow::numbers(std::initializer_list<double> more, int decimals) {
  for (const double number : more) cells.emplace_back(table_number(number, decimals));
  return *this;
}

ReportTable::ReportTable(std::string_view headings) { add_columns(headings); }

void ReportTable::add_columns(std::string_view headings) {
  constexpr std::string_view kBetween = " | ";
  for (bool is_last = false; !is_last;) {
    const std::size_t end = headings.find(kBetween);
    is_last = end == std::string_view::npos;
    std::string_view heading = headings.substr(0, end);
    ReportColumn& column = columns.emplace_back();
    if (const std::size_t key = heading.find('='); key != std::string_view::npos) {
      column.key = heading.substr(key + 1);
      heading = heading.substr(0, key);
    }
    if (heading.ends_with('@')) {
      column.shown = Shown::page;
      heading.remove_suffix(1);
    }
    if (heading.ends_with('<')) {
      column.is_number = false;
      heading.remove_suffix(1);
    }
    column.heading = heading;
    if (!is_last) headings.remove_prefix(end + kBetween.size());
  }
}

ReportTable ReportTable::facts() {
  constexpr std::size_t kLabel = 12;
  ReportTable table{"< | <"};
  table.columns.front().least_width = kLabel;
  return table;
}

ReportSection& ReportDocument::add(std::string section, std::vector<ReportBlock> blocks) {
  sections.push_back({std::move(section), std::move(blocks)});
  return sections.back();
}

std::string escape_markdown(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*<>|[]~&#";
  std::string out;
  // One code point at a time. Invalid bytes are replaced by U+FFFD.
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length != 1) {
      if (length == 0)
        append_utf8(out, 0xFFFD);
      else
        out += text.substr(i, length);
      i += length == 0 ? 1 : length;
      continue;
    }
    const char c = text[i];
    // Underscores inside words are not markup, so names like step_ms stay readable.
    const bool inside_word = i > 0 && i + 1 < text.size() && is_word(text[i - 1]) && is_word(text[i + 1]);
    if (c == '\n' || c == '\r' || c == '\t') {
      out += ' ';
    } else if (static_cast<unsigned char>(c) < 0x20U || c == 0x7F) {
      append_utf8(out, 0xFFFD);
    } else if (kMarkup.find(c) != std::string_view::npos || (c == '_' && !inside_word)) {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
    ++i;
  }
  return out;
}

ReportSection command_section(const ReportDocument& document) {
  ReportSection section{"To reproduce this"};
  if (!document.command.empty()) section.blocks.emplace_back(ReportCode{"", document.command});
  return section;
}

std::vector<ReportBlock> blocks_on(const ReportSection& section, Shown on) {
  std::vector<ReportBlock> blocks;
  if (!is_shown(section.shown, on)) return blocks;
  for (const ReportBlock& block : section.blocks) {
    const auto* table = std::get_if<ReportTable>(&block.content);
    const auto* list = std::get_if<ReportList>(&block.content);
    if (!is_shown(block.shown, on) || (table && table->rows.empty()) || (list && list->items.empty()))
      continue;
    if (table != nullptr)
      blocks.emplace_back(table_on(*table, on));
    else if (on == Shown::terminal || !std::holds_alternative<TerminalText>(block.content))
      blocks.push_back(block);
  }
  return blocks;
}

std::string report_text(const ReportDocument& document, std::size_t columns) {
  std::string text;
  for (const ReportSection& section : document.sections) {
    const std::vector<ReportBlock> blocks = blocks_on(section, Shown::terminal);
    if (blocks.empty()) continue;
    text += section.opening         ? TerminalBlock{columns}(TerminalText{*section.opening})
            : section.title.empty() ? std::string{}
                                    : "\n" + paragraph({}, section.title, columns);
    for (const ReportBlock& block : blocks) text += std::visit(TerminalBlock{columns}, block.content);
  }
  return text;
}

std::string report_text(const ReportTable& table, std::size_t columns) {
  std::string text = TerminalTable{table, columns}.text();
  if (!table.caption.empty()) text += paragraph(std::string(table.indent, ' '), table.caption, columns);
  return text;
}

std::string report_markdown(const ReportTable& table) {
  std::string text = "|";
  for (const ReportColumn& column : table.columns)
    text += fmt::format(" {} |", escape_markdown(column.heading));
  text += "\n|";
  for (const ReportColumn& column : table.columns) text += column.is_number ? "--:|" : ":--|";
  text += '\n';
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    text += '|';
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const std::string cell =
          c < table.rows[r].cells.size() ? escape_markdown(table.rows[r].cells[c].text) : std::string{};
      text += table.emphasized == r && !cell.empty() ? fmt::format(" **{}** |", cell)
                                                     : fmt::format(" {} |", cell);
    }
    text += '\n';
  }
  if (!table.caption.empty()) text += "\n" + escape_markdown(table.caption) + "\n";
  return text;
}

std::string report_markdown(const ReportDocument& document) {
  std::string text = fmt::format("## {}\n\n", escape_markdown(document.title));
  for (const std::string& line : document.subject) text += escape_markdown(line) + "  \n";
  if (!document.verdict.empty()) text += fmt::format("\n**{}**\n", escape_markdown(document.verdict));
  if (!document.figures.empty()) {
    ReportTable table{"< |  | < | source<"};
    for (const KeyFigure& figure : document.figures)
      table.row({figure.label, figure.value, figure.detail, figure.source});
    text += "\n" + report_markdown(table);
  }
  for (const ReportSection& section : document.sections) text += section_text(section);
  text += section_text(command_section(document));
  return text;
}

}  // namespace stepcast

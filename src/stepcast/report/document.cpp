#include "stepcast/report/document.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "stepcast/base/utf8.h"
#include "stepcast/report/cell_text.h"

namespace stepcast {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// A fence that the text does not hold.
std::string code_text(const ReportCode& code) {
  std::string fence = "```";
  while (code.text.find(fence) != std::string::npos) fence += '`';
  return fmt::format("{}{}\n{}{}{}\n",
                     code.label.empty() ? std::string{} : escape_markdown(code.label) + ":\n\n", fence,
                     code.text, code.text.ends_with('\n') ? "" : "\n", fence);
}

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

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(end + 1)) {
    end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
  }
  return lines;
}

// Columns as wide as their widest cell; no blanks at line ends.
class TerminalTable {
 public:
  explicit TerminalTable(const ReportTable& table) : table_(table) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      std::size_t width = table.columns[c].least_width;
      const auto& heading = headings_.emplace_back(lines_of(table.columns[c].heading));
      for (const std::string_view line : heading) width = std::max(width, width_of(line));
      heading_lines_ = std::max(heading_lines_, heading.size());
      for (std::size_t r = 0; r < table.rows.size(); ++r) width = std::max(width, width_of(cell(r, c)));
      widths_.push_back(width);
    }
    if (std::ranges::all_of(table.columns, &std::string::empty, &ReportColumn::heading)) heading_lines_ = 0;
  }

  std::string text() {
    for (std::size_t l = 0; l < heading_lines_; ++l) {
      add_line([&](std::size_t c) {
        const std::size_t missing = heading_lines_ - headings_[c].size();  // headings stand at the bottom
        return l < missing ? std::string_view{} : headings_[c][l - missing];
      });
    }
    for (std::size_t r = 0; r < table_.rows.size(); ++r) {
      if (std::ranges::find(table_.rules, r) != table_.rules.end()) {
        const std::string dashes(*std::ranges::max_element(widths_), '-');
        add_line([&](std::size_t c) { return std::string_view{dashes}.substr(0, widths_[c]); });
      }
      add_line([&](std::size_t c) { return cell(r, c); });
    }
    return std::move(text_);
  }

 private:
  [[nodiscard]] std::string_view cell(std::size_t r, std::size_t c) const {
    return c < table_.rows[r].cells.size() ? std::string_view{table_.rows[r].cells[c].text}
                                           : std::string_view{};
  }

  void add_line(const auto& content) {
    std::string line(table_.indent, ' ');
    for (std::size_t c = 0; c < widths_.size(); ++c) {
      const std::string_view text = content(c);
      const std::string padding(widths_[c] - width_of(text), ' ');
      if (c > 0) line += "  ";
      if (table_.columns[c].is_number) line += padding;
      line += text;
      if (!table_.columns[c].is_number) line += padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text_ += line + '\n';
  }

  const ReportTable& table_;
  std::vector<std::vector<std::string_view>> headings_;
  std::vector<std::size_t> widths_;
  std::size_t heading_lines_ = 0;
  std::string text_;
};

struct TerminalBlock {
  std::string operator()(const ReportText& block) const {
    return std::string(block.indent, ' ') + block.text + "\n";
  }
  std::string operator()(const ReportList& block) const {
    std::string text;
    for (const std::string& item : block.items) text += fmt::format("{}{}\n", block.bullet, item);
    return text;
  }
  std::string operator()(const ReportTable& block) const { return report_text(block); }
  std::string operator()(const ReportFigure& /*picture*/) const { return {}; }
  std::string operator()(const ReportCode& block) const {
    return block.label.empty() ? block.text : fmt::format("  {}:\n{}", block.label, block.text);
  }
  std::string operator()(const TerminalText& block) const { return block.text; }
};

// "compu-\ntation" is "computation" on one line.
std::string on_one_line(std::string heading) {
  for (std::size_t at = 0; (at = heading.find('\n', at)) != std::string::npos;)
    if (at > 0 && heading[at - 1] == '-')
      heading.erase(at - 1, 2);
    else
      heading[at] = ' ';
  return heading;
}

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
  if (table.rows.size() > most) {
    out.rows.resize(most);
    out.caption = fmt::format("and {} more", table.rows.size() - most);
  }
  for (std::size_t c = 0; c < out.columns.size() && on == Shown::terminal; ++c) {
    for (auto& [cells] : out.rows)
      if (c < cells.size()) cells[c].text = shorten(std::move(cells[c].text), out.columns[c].most_width);
  }
  return out;
}

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

ReportRow& ReportRow::numbers(std::initializer_list<double> more, int decimals) {
  for (const double number : more) cells.emplace_back(table_number(number, decimals));
  return *this;
}

ReportTable::ReportTable(std::string_view headings) {
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
  ReportSection section{"To make this again"};
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

std::string report_text(const ReportDocument& document) {
  std::string text;
  for (const ReportSection& section : document.sections) {
    const std::vector<ReportBlock> blocks = blocks_on(section, Shown::terminal);
    if (blocks.empty()) continue;
    text += section.opening         ? *section.opening
            : section.title.empty() ? std::string{}
                                    : fmt::format("\n{}\n", section.title);
    for (const ReportBlock& block : blocks) text += std::visit(TerminalBlock{}, block.content);
  }
  return text;
}

std::string report_text(const ReportTable& table) {
  std::string text = TerminalTable{table}.text();
  if (!table.caption.empty()) text += std::string(table.indent, ' ') + table.caption + "\n";
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
    ReportTable table{"< |  | < | rests on<"};
    for (const KeyFigure& figure : document.figures)
      table.row({figure.label, figure.value, figure.detail, figure.source});
    text += "\n" + report_markdown(table);
  }
  for (const ReportSection& section : document.sections) text += section_text(section);
  text += section_text(command_section(document));
  return text;
}

}  // namespace stepcast

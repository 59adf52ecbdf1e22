#include "stepcast/report/document.h"

#include <cctype>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/utf8.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

std::string table_text(const ReportTable& table) {
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
          c < table.rows[r].size() ? escape_markdown(table.rows[r][c].text) : std::string{};
      text += table.emphasized == r && !cell.empty() ? fmt::format(" **{}** |", cell)
                                                     : fmt::format(" {} |", cell);
    }
    text += '\n';
  }
  if (!table.caption.empty()) text += "\n" + escape_markdown(table.caption) + "\n";
  return text;
}

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
  std::string operator()(const ReportTable& block) const { return table_text(block); }
  std::string operator()(const ReportFigure& /*picture*/) const { return {}; }
  std::string operator()(const ReportCode& block) const { return code_text(block); }
  std::string operator()(const TerminalText& /*lines*/) const { return {}; }
};

std::string terminal_table(const ReportTable& table) {
  std::vector<TextTable::Column> columns;
  for (const ReportColumn& column : table.columns) {
    columns.push_back({column.heading, column.is_number ? TextTable::Align::right : TextTable::Align::left});
  }
  TextTable out{std::move(columns)};
  auto rule = table.rules.begin();
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    for (; rule != table.rules.end() && *rule == r; ++rule) out.rule();
    std::vector<std::string> cells;
    for (const ReportCell& cell : table.rows[r]) cells.push_back(cell.text);
    out.row(std::move(cells));
  }
  return out.text(table.indent) +
         (table.caption.empty() ? std::string{} : fmt::format("  {}\n", table.caption));
}

struct TerminalBlock {
  std::string operator()(const ReportText& block) const { return fmt::format("  {}\n", block.text); }
  std::string operator()(const ReportList& block) const {
    std::string text;
    for (const std::string& item : block.items) text += fmt::format("  - {}\n", item);
    return text;
  }
  std::string operator()(const ReportTable& block) const { return terminal_table(block); }
  std::string operator()(const ReportFigure& /*picture*/) const { return {}; }
  std::string operator()(const ReportCode& block) const {
    return block.label.empty() ? block.text : fmt::format("  {}:\n{}", block.label, block.text);
  }
  std::string operator()(const TerminalText& block) const { return block.text; }
};

// "compu-\ntation" is "computation" on one line.
std::string on_one_line(std::string heading) {
  for (std::size_t at = 0; (at = heading.find('\n', at)) != std::string::npos;) {
    if (at > 0 && heading[at - 1] == '-') {
      heading.erase(at - 1, 2);
    } else {
      heading[at] = ' ';
    }
  }
  return heading;
}

ReportTable table_on(const ReportTable& table, Shown on) {
  ReportTable out = table;
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    if (on == Shown::page) out.columns[c].heading = on_one_line(std::move(out.columns[c].heading));
    if (is_shown(table.columns[c].shown, on)) continue;
    const auto at = static_cast<std::ptrdiff_t>(c);
    out.columns.erase(out.columns.begin() + at);
    for (std::vector<ReportCell>& row : out.rows) {
      if (c < row.size()) row.erase(row.begin() + at);
    }
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

std::string escape_markdown(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*<>|[]~&#";
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length != 1) {
      if (length == 0) {
        append_utf8(out, 0xFFFD);
      } else {
        out += text.substr(i, length);
      }
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
    if (!is_shown(block.shown, on)) continue;
    if (const auto* table = std::get_if<ReportTable>(&block.content)) {
      blocks.emplace_back(table_on(*table, on));
    } else if (on == Shown::terminal || !std::holds_alternative<TerminalText>(block.content)) {
      blocks.push_back(block);
    }
  }
  return blocks;
}

std::string report_text(const ReportDocument& document) {
  std::string text;
  for (const ReportSection& section : document.sections) {
    const std::vector<ReportBlock> blocks = blocks_on(section, Shown::terminal);
    if (blocks.empty()) continue;
    if (!section.title.empty() && is_shown(section.titled, Shown::terminal))
      text += fmt::format("\n{}\n", section.title);
    for (const ReportBlock& block : blocks) text += std::visit(TerminalBlock{}, block.content);
  }
  return text;
}

std::string report_markdown(const ReportDocument& document) {
  std::string text = fmt::format("## {}\n\n", escape_markdown(document.title));
  for (const std::string& line : document.subject) text += escape_markdown(line) + "  \n";
  if (!document.verdict.empty()) text += fmt::format("\n**{}**\n", escape_markdown(document.verdict));
  if (!document.figures.empty()) {
    ReportTable table{{{"", false}, {""}, {"", false}, {"rests on", false}}, {}};
    for (const KeyFigure& figure : document.figures) {
      table.rows.push_back({figure.label, figure.value, figure.detail, figure.source});
    }
    text += "\n" + table_text(table);
  }
  for (const ReportSection& section : document.sections) text += section_text(section);
  text += section_text(command_section(document));
  return text;
}

}  // namespace stepcast

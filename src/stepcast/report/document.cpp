#include "stepcast/report/document.h"

#include <cctype>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/utf8.h"

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
};

std::string section_text(const ReportSection& section) {
  std::string body;
  for (const ReportBlock& block : section.blocks) {
    const std::string part = std::visit(BlockText{}, block);
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

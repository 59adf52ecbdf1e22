// An answer as a page that a person reads: a verdict, the figures that matter, sections of tables and pictures. One
// content for HTML (report/html/page.h) and Markdown.
//
//   ReportDocument document = forecast_document(forecast);
//   report_html(document), report_markdown(document)
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "stepcast/report/html/markup.h"

namespace stepcast {

struct ReportColumn {
  std::string heading;  // names its unit: "step ms"
  bool is_number = true;
};

struct ReportCell {
  ReportCell() = default;
  ReportCell(std::string content) : text(std::move(content)) {}  // NOLINT(google-explicit-constructor)
  ReportCell(const char* content) : text(content) {}             // NOLINT(google-explicit-constructor)
  ReportCell(std::string content, double key) : text(std::move(content)), sorts_as(key) {}
  std::string text;
  double sorts_as = std::numeric_limits<double>::quiet_NaN();  // where the text alone would sort it wrongly
  std::string swatch{};  // class of the colour that stands for it in a picture (report/html/palette.h)
  std::string copies{};  // what a button beside it copies
};

struct ReportTable {
  std::vector<ReportColumn> columns;
  std::vector<std::vector<ReportCell>> rows;
  std::optional<std::size_t> emphasized{};  // row
  std::string caption{};
};

// A picture with its legend; HTML alone has it, so a table has to say the same.
struct ReportFigure {
  Markup picture;
  std::string caption;
};

struct ReportText {
  std::string text;
};

struct ReportList {
  std::vector<std::string> items;
};

// Text that somebody will copy: flags, a file.
struct ReportCode {
  std::string label, text;
};

using ReportBlock = std::variant<ReportText, ReportList, ReportTable, ReportFigure, ReportCode>;

struct ReportSection {
  std::string title;
  std::vector<ReportBlock> blocks{};
  bool folded = false;  // shown when asked for
};

// One of the figures on top, with its interval and what it rests on.
struct KeyFigure {
  std::string label, value;
  std::string detail{};  // "p10 447.9, p90 541.2"
  std::string source{};  // measured, fitted, analytic, assumed, simulated; or nothing
};

struct ReportDocument {
  std::string title;
  std::vector<std::string> subject{};  // what was asked, line by line
  std::string verdict{};
  std::vector<KeyFigure> figures{};
  std::vector<ReportSection> sections{};
  std::string json{};     // of the same answer, as --json prints it
  std::string command{};  // for a shell: what makes this page again; or nothing
};

// `command` of a document as its last section; without blocks where it has none.
[[nodiscard]] ReportSection command_section(const ReportDocument& document);

// For issues and pull requests: headings from the second level on, no pictures.
[[nodiscard]] std::string report_markdown(const ReportDocument& document);

// As text inside Markdown: what would be markup there is escaped, line breaks become blanks.
[[nodiscard]] std::string escape_markdown(std::string_view text);

}  // namespace stepcast

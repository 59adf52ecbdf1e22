// An answer as a person reads it: a verdict, the figures that matter, sections of texts, tables and pictures. One content
// for the terminal, for HTML (report/html/page.h) and for Markdown, so that a number is formatted once.
//
//   ReportDocument document = forecast_document(forecast);
//   report_text(document), report_html(document), report_markdown(document)
//
//   ReportTable table{"rank< | step ms=step_time_ms | error %"};
//   table.row({"0"}).numbers({14.455}, 2).cell(table_signed(0.03, 2));
//   document.add("Ranks", {std::move(table)});
//
// HTML and Markdown are pages: title, subject, verdict, figures, then the sections. A terminal shows the sections alone.
// Where the two must differ, sections, blocks and columns say where they are shown:
//
//   section.add(ReportText{"Step time 12.3 ms"}, Shown::terminal);
//
// Figures and columns name the member of the answer's JSON that they show: tests hold one to the other.
//
// Lists without items, tables without rows and sections without anything to show are left out.
//
// In a terminal a section is an empty line, its title, its blocks; one without a title is its blocks alone. Texts, lists
// and tables are indented by two blanks, a caption stands below its table, and a TerminalText is printed as it is.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "stepcast/report/html/markup.h"

namespace stepcast {

enum class Shown : std::uint8_t { terminal = 1, page = 2, everywhere = 3 };
[[nodiscard]] constexpr bool is_shown(Shown shown, Shown on) {
  return (static_cast<unsigned>(shown) & static_cast<unsigned>(on)) != 0;
}

inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

struct ReportColumn {
  std::string heading;  // names its unit: "step ms"; "\n" begins a second line in a terminal
  bool is_number = true;
  Shown shown = Shown::everywhere;
  std::string key{};                                   // of the same number in an item of the table's list
  std::size_t least_width = 0, most_width = kNoLimit;  // characters, in a terminal
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

struct ReportRow {
  std::vector<ReportCell> cells;
  // Each adds behind the cells that there are; numbers with so many decimals.
  ReportRow& cell(ReportCell more) {
    cells.push_back(std::move(more));
    return *this;
  }
  ReportRow& numbers(std::initializer_list<double> more, int decimals);
};

struct ReportTable {
  ReportTable() = default;
  // Columns by their headings: "stage< | in all GiB=total_GiB | rests on<@". Behind a heading "<" is for words, "@" for pages
  // alone, "=key" for the member that it shows.
  explicit ReportTable(std::string_view headings);
  void add_columns(std::string_view headings);
  // Of a label and a text in each row, without headings: "  format        training log".
  [[nodiscard]] static ReportTable facts();

  // Missing cells are empty. The reference holds until the next row.
  ReportRow& row(std::vector<ReportCell> cells) { return rows.emplace_back(ReportRow{std::move(cells)}); }
  // A line of dashes above the next row, in a terminal.
  void rule() { rules.push_back(rows.size()); }

  std::vector<ReportColumn> columns;
  std::vector<ReportRow> rows;
  std::optional<std::size_t> emphasized{};  // row
  std::string caption{};
  std::vector<std::size_t> rules{};  // rows with a line of dashes above them
  std::size_t indent = 2;            // blanks before each line, in a terminal
  // Rows that are shown; then it is said how many more there are.
  std::size_t most = kNoLimit, most_in_terminal = most;
  std::vector<std::string> on_first_screen{};  // headings of the columns shown there; empty: all
  std::string list{};  // path of the list in the answer's JSON whose items are the rows, if they are
};

// A picture with its legend; HTML alone has it, so a table has to say the same.
struct ReportFigure {
  Markup picture;
  std::string caption;
};

struct ReportText {
  std::string text;
  std::size_t indent = 2;  // blanks before it, in a terminal
};

// Lines for a terminal, which are printed as they are.
struct TerminalText {
  std::string text;
};

struct ReportList {
  std::vector<std::string> items;
  std::string_view bullet = "  - ";  // before each, in a terminal
};

// Text that somebody will copy: flags, a file.
struct ReportCode {
  std::string label, text;
};

struct ReportBlock {
  using Content = std::variant<ReportText, ReportList, ReportTable, ReportFigure, ReportCode, TerminalText>;
  template <class Block>
    requires(!std::same_as<std::remove_cvref_t<Block>, ReportBlock> &&
             std::constructible_from<Content, Block>)
  ReportBlock(Block&& block, Shown on = Shown::everywhere)  // NOLINT(google-explicit-constructor)
      : content(std::forward<Block>(block)), shown(on) {}
  Content content;
  Shown shown;
};

struct ReportSection {
  std::string title;
  std::vector<ReportBlock> blocks{};
  bool folded = false;  // on a page: shown when asked for
  Shown shown = Shown::everywhere;
  std::optional<std::string> opening{};  // in a terminal in place of an empty line and the title, as it is
  bool is_asked = false;                 // a flag asked for it: the first screen shows it, too

  void add(ReportBlock block, Shown on = Shown::everywhere) {
    block.shown = on;
    blocks.push_back(std::move(block));
  }
};

// One of the figures on top, with its interval and what it rests on.
struct KeyFigure {
  std::string label, value;
  std::string detail{};  // "p10 447.9, p90 541.2"
  std::string source{};  // measured, fitted, analytic, assumed, simulated; or nothing
  std::string key{};     // path of the same number in the answer's JSON: "throughput.mfu"
  double scale = 1;      // of what is shown: 100 for percent of a fraction
};

// What the first screen of a terminal (report/first_screen.h) shows behind title, subject and figures.
struct FirstScreen {
  std::string why{};                  // one or two sentences; empty: the verdict
  std::vector<ReportBlock> blocks{};  // what to change, or the first rows of a list
  std::vector<std::string> notes{};   // the most important first: as many as there is room for
  bool shows_title = true;
  std::size_t most_figures = kNoLimit;
};

struct ReportDocument {
  std::string title;
  std::vector<std::string> subject{};  // what was asked, line by line
  std::string verdict{};
  std::vector<KeyFigure> figures{};
  std::vector<ReportSection> sections{};
  std::string json{};                  // of the same answer, as --json prints it
  std::string command{};               // for a shell: what makes this page again; or nothing
  Shown made_for = Shown::everywhere;  // a terminal needs no pictures and no JSON
  std::optional<FirstScreen> first_screen{};

  [[nodiscard]] bool has_page() const { return is_shown(made_for, Shown::page); }
  // Takes a section behind the others; the reference holds until the next one.
  ReportSection& add(std::string section, std::vector<ReportBlock> blocks = {});
};

// `command` of a document as its last section; without blocks where it has none.
[[nodiscard]] ReportSection command_section(const ReportDocument& document);

// What a terminal shows that is so many characters wide: texts and words in tables go on further lines, columns that do
// not fit stand below. What has to be copied, flags and files, stays as it is.
[[nodiscard]] std::string report_text(const ReportDocument& document, std::size_t columns = kNoLimit);
[[nodiscard]] std::string report_text(const ReportTable& table, std::size_t columns = kNoLimit);

// Words on lines of at most `most` characters; a longer word is a line of its own.
[[nodiscard]] std::vector<std::string_view> wrapped_lines(std::string_view text, std::size_t most);

// The blocks of a section, or of one of its tables the columns, that are shown there; headings on one line for a page.
[[nodiscard]] std::vector<ReportBlock> blocks_on(const ReportSection& section, Shown on);

// For issues and pull requests: headings from the second level on, no pictures.
[[nodiscard]] std::string report_markdown(const ReportDocument& document);
[[nodiscard]] std::string report_markdown(const ReportTable& table);

// As text inside Markdown: what would be markup there is escaped, line breaks become blanks.
[[nodiscard]] std::string escape_markdown(std::string_view text);

}  // namespace stepcast

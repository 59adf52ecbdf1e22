// An answer as a document: a verdict, the key figures, and sections with texts, tables and pictures. One
// content serves the terminal, HTML (report/html/page.h) and Markdown, so each number is formatted once.
//
//   ReportDocument document = forecast_document(forecast);
//   report_text(document), report_html(document), report_markdown(document)
//
//   ReportTable table{"rank< | step ms=step_time_ms | error %"};
//   table.row({"0"}).numbers({14.455}, 2).cell(table_signed(0.03, 2));
//   document.add("Ranks", {std::move(table)});
//
// HTML and Markdown are pages: title, subject, verdict, figures, then the sections. A terminal shows only the
// sections. Sections, blocks and columns can be limited to one of the two:
//
//   section.add(ReportText{"Step time 12.3 ms"}, Shown::terminal);
//
// Figures and columns can name the member of the answer's JSON that they show; tests compare the two.
//
// Lists without items, tables without rows and sections without content are left out.
//
// In a terminal, a section is an empty line, its title and its blocks; without a title it is only its blocks.
// Texts, lists and tables are indented by two blanks, a caption is below its table, and a TerminalText is
// printed unchanged.
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

// Where something is shown: a set of bits.
enum class Shown : std::uint8_t { terminal = 1, page = 2, everywhere = 3 };
[[nodiscard]] constexpr bool is_shown(Shown shown, Shown on) {
  return (static_cast<unsigned>(shown) & static_cast<unsigned>(on)) != 0;
}

// No limit on widths or rows.
inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

// A column of a table.
struct ReportColumn {
  std::string heading;  // with its unit: "step ms"; "\n" begins a second line in a terminal
  bool is_number = true;
  Shown shown = Shown::everywhere;
  // The JSON key of the number in the items of the table's list.
  std::string key{};
  // The least and most width in characters; for terminals only.
  std::size_t least_width = 0, most_width = kNoLimit;
};

// A cell of a table.
struct ReportCell {
  ReportCell() = default;
  ReportCell(std::string content) : text(std::move(content)) {}  // NOLINT(google-explicit-constructor)
  ReportCell(const char* content) : text(content) {}             // NOLINT(google-explicit-constructor)
  ReportCell(std::string content, double key) : text(std::move(content)), sorts_as(key) {}
  std::string text;
  // The value to sort by on a page, if the text would sort wrongly. NaN: sort by the text.
  double sorts_as = std::numeric_limits<double>::quiet_NaN();
  std::string swatch{};  // CSS class of the colour that this row has in a picture (report/html/report.css)
  std::string copies{};  // text that a button in the cell copies
};

// A row of a table.
struct ReportRow {
  std::vector<ReportCell> cells;
  // Append cells. `numbers`: with this number of decimals.
  ReportRow& cell(ReportCell more) {
    cells.push_back(std::move(more));
    return *this;
  }
  ReportRow& numbers(std::initializer_list<double> more, int decimals);
};

// A table.
struct ReportTable {
  ReportTable() = default;
  // Makes columns from their headings, separated by " | ": "stage< | total GiB=total_GiB | source<@". Marks
  // behind a heading: "<" for a column of words, "@" for pages only, "=key" for the JSON member that it
  // shows.
  explicit ReportTable(std::string_view headings);
  void add_columns(std::string_view headings);
  // A table with a label and a text per row, without headings: "  format        training log".
  [[nodiscard]] static ReportTable facts();

  // Adds a row; missing cells are empty. The reference is valid until the next row is added.
  ReportRow& row(std::vector<ReportCell> cells) { return rows.emplace_back(ReportRow{std::move(cells)}); }
  // Draws a line of dashes above the next row; in a terminal only.
  void rule() { rules.push_back(rows.size()); }

  std::vector<ReportColumn> columns;
  std::vector<ReportRow> rows;
  std::optional<std::size_t> emphasized{};  // number of a row that is shown in bold
  std::string caption{};
  std::vector<std::size_t> rules{};  // numbers of the rows with a line of dashes above them
  std::size_t indent = 2;            // blanks in front of each line; in a terminal only
  // The number of rows to show, in total and in a terminal. If there are more, their number is shown below.
  std::size_t most = kNoLimit, most_in_terminal = most;
  std::vector<std::string> on_first_screen{};  // headings of the columns to show there; empty: all
  // The number of rows of the whole list if `rows` are only its first ones; it is shown below the table.
  std::size_t of = 0;
  // The path of the list in the JSON if its items are the rows; otherwise empty.
  std::string list{};
};

// A picture with its legend. Only HTML shows it, so a table must contain the same information.
struct ReportFigure {
  Markup picture;
  std::string caption;
};

// A paragraph, or several lines separated by "\n".
struct ReportText {
  std::string text;
  std::size_t indent = 2;  // blanks in front of it; in a terminal only
};

// Lines that are printed unchanged; in a terminal only.
struct TerminalText {
  std::string text;
};

// A list of sentences.
struct ReportList {
  std::vector<std::string> items;
  std::string_view bullet = "  - ";  // text in front of each item; in a terminal only
  std::size_t most = kNoLimit;       // items on the first screen, which says how many more there are
};

// Text for users to copy: flags or a file. It is not wrapped.
struct ReportCode {
  std::string label, text;
};

// One block of a section, of any kind.
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

// A section of a document.
struct ReportSection {
  std::string title;
  std::vector<ReportBlock> blocks{};
  bool folded = false;  // on a page: collapsed until the reader opens it
  Shown shown = Shown::everywhere;
  // In a terminal: printed unchanged in place of the empty line and the title.
  std::optional<std::string> opening{};
  // True if a flag asked for this section: it is then printed below the first screen, too.
  bool is_asked = false;

  void add(ReportBlock block, Shown on = Shown::everywhere) {
    block.shown = on;
    blocks.push_back(std::move(block));
  }
};

// One of the key figures at the top, with its interval and source.
struct KeyFigure {
  std::string label, value;
  std::string detail{};  // "p10 447.9, p90 541.2"
  std::string source{};  // measured, fitted, analytic, assumed, simulated; may be empty
  std::string key{};     // path of the same number in the JSON: "throughput.mfu"
  double scale = 1;      // shown number / JSON number: 100 for a fraction in percent
};

// The part of an answer that the first screen of a terminal (report/first_screen.h) shows below title,
// subject and figures.
struct FirstScreen {
  std::string why{};                  // one or two sentences; empty: the verdict
  std::vector<ReportBlock> blocks{};  // what to change, or the first rows of a list
  // Most important first; as many are shown as there is room for.
  std::vector<std::string> notes{};
  bool shows_title = true;
  std::size_t most_figures = kNoLimit;
};

// A complete answer.
struct ReportDocument {
  std::string title;
  std::vector<std::string> subject{};  // the question, line by line
  std::string verdict{};
  std::vector<KeyFigure> figures{};
  std::vector<ReportSection> sections{};
  std::string json{};     // the same answer as --json prints it
  std::string command{};  // the shell command that makes this page again; may be empty
  // For a terminal, pictures and JSON need not be made.
  Shown made_for = Shown::everywhere;
  std::optional<FirstScreen> first_screen{};

  [[nodiscard]] bool has_page() const { return is_shown(made_for, Shown::page); }
  // Appends a section. The reference is valid until the next section is added.
  ReportSection& add(std::string section, std::vector<ReportBlock> blocks = {});
  // Keeps the sections from number `first` on off terminals, which print the same with and without a page.
  void keep_on_page(std::size_t first) {
    for (; first < sections.size(); ++first) sections[first].shown = Shown::page;
  }
};

// The section with `command`, which is the last one of a page. It has no blocks if the command is empty.
[[nodiscard]] ReportSection command_section(const ReportDocument& document);

// The document for a terminal that is `columns` characters wide. Texts and words in tables are wrapped, and
// columns that do not fit are printed below the others. Flags and files are not wrapped, so that they can be
// copied.
[[nodiscard]] std::string report_text(const ReportDocument& document, std::size_t columns = kNoLimit);
[[nodiscard]] std::string report_text(const ReportTable& table, std::size_t columns = kNoLimit);

// Splits a text at blanks into lines of at most `most` characters. A longer word is a line of its own.
[[nodiscard]] std::vector<std::string_view> wrapped_lines(std::string_view text, std::size_t most);

// The blocks of a section that are shown on a terminal or a page, with only those columns and rows of tables.
// Headings are on one line for a page.
[[nodiscard]] std::vector<ReportBlock> blocks_on(const ReportSection& section, Shown on);

// The document for issues and pull requests: headings begin at the second level, and there are no pictures.
[[nodiscard]] std::string report_markdown(const ReportDocument& document);
[[nodiscard]] std::string report_markdown(const ReportTable& table);

// Escapes a text for use inside Markdown. Line breaks become blanks, control characters are replaced.
[[nodiscard]] std::string escape_markdown(std::string_view text);

}  // namespace stepcast

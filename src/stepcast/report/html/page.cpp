// The page is written by PageWriter; report_html() puts it between head and script. The script only adds
// comfort (sorting, copying, tooltips), so buttons are hidden until it runs.
#include "stepcast/report/html/page.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/version.h"
#include "stepcast/report/html/assets.h"

namespace stepcast {
namespace {

constexpr std::string_view kJsonBegin = R"(<script type="application/json" id="stepcast-json">)";
constexpr std::string_view kJsonEnd = "</script>";

// Escapes "<" in JSON. It can only occur inside strings, where \u003c means the same, so no text can end the
// <script> element.
std::string json_in_html(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json)
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

// Writes the body of a page. The overloads of operator() write one kind of block each.
class PageWriter {
 public:
  // `tools`: with button for the colour theme and footer, for a complete page.
  Markup body(const ReportDocument& document, bool tools) {
    page_.open(tools ? "main" : "div", {{"class", "stepcast"}}).open("header");
    if (tools)
      page_.open("div", {{"class", "tools"}})
          .element("button", {{"class", "theme"}, {"type", "button"}, {"hidden", "hidden"}}, "dark / light")
          .close();
    page_.element("h1", {}, document.title);
    for (const std::string& line : document.subject) page_.element("p", {{"class", "subject"}}, line);
    if (!document.verdict.empty()) page_.element("p", {{"class", "verdict"}}, document.verdict);
    if (!document.figures.empty()) figures(document);
    std::vector<ReportSection> sections = document.sections;
    sections.push_back(command_section(document));
    std::erase_if(sections, [](const auto& one) { return blocks_on(one, Shown::page).empty(); });
    // In a notebook, anchors of several answers would be the same.
    constexpr std::size_t kFewSections = 5;
    has_anchors_ = tools && sections.size() > kFewSections;
    if (has_anchors_) contents(sections);
    page_.close();
    for (std::size_t i = 0; i < sections.size(); ++i) section(sections[i], i);
    if (tools) {
      page_.element("footer", {},
                    fmt::format("stepcast {}. This file contains the answer as JSON.", version()));
    }
    page_.close();
    return std::move(page_);
  }

  void operator()(const ReportText& block) { page_.element("p", {}, block.text); }

  void operator()(const ReportList& block) {
    page_.open("ul", {{"class", "list"}});
    for (const std::string& item : block.items) page_.element("li", {}, item);
    page_.close();
  }

  void operator()(const TerminalText& /*lines*/) {}

  void operator()(const ReportFigure& block) {
    if (block.picture.empty()) return;
    page_.open("figure").append(block.picture);
    if (!block.caption.empty()) page_.element("figcaption", {}, block.caption);
    page_.close();
  }

  void operator()(const ReportCode& block) {
    page_.open("div", {{"class", "code"}});
    if (!block.label.empty()) page_.element("p", {{"class", "small"}}, block.label);
    page_.element("pre", {}, block.text);
    copy_button(block.text);
    page_.close();
  }

  void operator()(const ReportTable& table) {
    if (table.rows.empty()) return;
    // Rows that fit on a screen, and columns that fit on paper in portrait; taller tables scroll.
    constexpr std::size_t kTall = 24, kWide = 13;
    page_.open("div", {{"class", "table"}})
        .open("div", {{"class", fmt::format("scroll{}{}", table.rows.size() > kTall ? " tall" : "",
                                            table.columns.size() > kWide ? " wide" : "")}})
        .open("table")
        .open("thead")
        .open("tr");
    for (const ReportColumn& column : table.columns) heading(column);
    page_.close().close().open("tbody");
    for (std::size_t r = 0; r < table.rows.size(); ++r) row(table, r);
    page_.close().close().close();
    if (!table.caption.empty()) page_.element("p", {{"class", "small"}}, table.caption);
    page_.close();
  }

 private:
  // The key figures as a list of terms.
  void figures(const ReportDocument& document) {
    page_.open("dl", {{"class", "figures"}});
    for (const KeyFigure& figure : document.figures) {
      page_.open("div");
      page_.element("dt", {}, figure.label);
      page_.open("dd").element("b", {}, figure.value);
      if (!figure.detail.empty()) page_.element("span", {}, figure.detail);
      if (!figure.source.empty()) page_.element("em", {{"class", "source"}}, figure.source);
      page_.close().close();
    }
    page_.close();
  }

  // The list of sections, with links to them.
  void contents(const std::vector<ReportSection>& sections) {
    page_.open("nav", {{"aria-label", "Contents"}}).open("ul", {{"class", "contents"}});
    for (std::size_t i = 0; i < sections.size(); ++i)
      page_.open("li").element("a", {{"href", "#" + anchor(i)}}, sections[i].title).close();
    page_.close().close();
  }

  static std::string anchor(std::size_t number) { return fmt::format("section-{}", number + 1); }

  // A section, folded if it says so. The anchor is inside, so that a link to a folded section opens it.
  void section(const ReportSection& section, std::size_t number) {
    if (section.folded)
      page_.open("details").element("summary", {}, section.title);
    else
      page_.open("section").element("h2", {}, section.title);
    if (has_anchors_)
      page_.open("div", {{"class", "blocks"}, {"id", anchor(number)}});
    else
      page_.open("div", {{"class", "blocks"}});
    for (const ReportBlock& block : blocks_on(section, Shown::page)) std::visit(*this, block.content);
    page_.close().close();
  }

  // The heading of a column, which may break behind "_". Without text it is no heading cell: accessibility.
  void heading(const ReportColumn& column) {
    if (column.heading.empty()) {
      page_.element("td", {}, "");
      return;
    }
    page_.open("th", {{"class", column.is_number ? "number" : "word"}, {"scope", "col"}});
    std::string_view rest = column.heading;
    for (std::size_t at; (at = rest.find('_')) != std::string_view::npos; rest.remove_prefix(at + 1))
      page_.text(rest.substr(0, at + 1)).leaf("wbr");
    page_.text(rest).close();
  }

  // A row of a table. `data-v` is the value by which report.js sorts.
  void row(const ReportTable& table, std::size_t r) {
    page_.open("tr", {{"class", table.emphasized == r ? "chosen" : "plain"}});
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const ReportCell cell = c < table.rows[r].cells.size() ? table.rows[r].cells[c] : ReportCell{};
      constexpr std::size_t kShort = 48;
      const char* const kind = table.columns[c].is_number   ? "number"
                               : cell.text.size() <= kShort ? "word short"
                                                            : "word";
      if (std::isfinite(cell.sorts_as))
        page_.open("td", {{"class", kind}, {"data-v", fmt::format("{:.9g}", cell.sorts_as)}});
      else
        page_.open("td", {{"class", kind}});
      if (!cell.swatch.empty()) page_.element("i", {{"class", cell.swatch}}, "");
      page_.text(cell.text);
      if (!cell.copies.empty()) copy_button(cell.copies);
      page_.close();
    }
    page_.close();
  }

  // A button that copies `text`.
  void copy_button(const std::string& text) {
    page_.element("button",
                  {{"class", "copy"}, {"type", "button"}, {"hidden", "hidden"}, {"data-copy", text}}, "copy");
  }

  Markup page_;
  bool has_anchors_ = false;
};

}  // namespace

std::string report_html(const ReportDocument& document) {
  const Markup body = PageWriter{}.body(document, true);
  // The policy allows inline styles, the one script with this hash and nothing from the network.
  const std::string policy = fmt::format(
      "default-src 'none'; style-src 'unsafe-inline'; script-src '{}'; img-src data:; base-uri 'none'; "
      "form-action 'none'",
      report_script_hash());
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", policy);
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += fmt::format("<meta name=\"generator\" content=\"stepcast {}\">\n", escape_markup(version()));
  page += fmt::format("<title>{}</title>\n", escape_markup(document.title));
  page += fmt::format("<link rel=\"icon\" href=\"data:,\">\n<style>\n{}</style>\n</head>\n<body>\n",
                      report_style());
  page += body.str();
  page += '\n';
  // The JSON comes before the script, so the script can read it.
  page += kJsonBegin;
  page += json_in_html(document.json);
  page += kJsonEnd;
  page += fmt::format("\n<script>{}</script>\n</body>\n</html>\n", report_script());
  return page;
}

// Notebooks remove scripts, so buttons and the theme are left out.
std::string report_fragment(const ReportDocument& document) {
  return fmt::format("<style>\n{}</style>\n{}", report_style(), PageWriter{}.body(document, false).str());
}

std::optional<std::string_view> embedded_json_view(std::string_view page) {
  const std::size_t begin = page.find(kJsonBegin);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view rest = page.substr(begin + kJsonBegin.size());
  const std::size_t end = rest.find(kJsonEnd);
  if (end == std::string_view::npos) return std::nullopt;
  return rest.substr(0, end);
}

std::optional<std::string> embedded_json(std::string_view page) {
  const auto json = embedded_json_view(page);
  return json ? std::optional{std::string{*json}} : std::nullopt;
}

}  // namespace stepcast

// --report and --format: the answer of a verb as a page of HTML, as Markdown, as JSON.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include <CLI/CLI.hpp>

#include "stepcast/base/output_file.h"
#include "stepcast/base/result.h"
#include "stepcast/report/document.h"

namespace stepcast::cli {

struct ReportOptions {
  std::string file, format = "text";
};

// `json` is set by --format json, too.
void add_report_options(CLI::App& app, ReportOptions& options, bool& json);

class ReportOutput {
 public:
  // Looks at the file before the work begins. Errors: a file that cannot be written, or that is one of `inputs` (files, or
  // folders with what was read).
  [[nodiscard]] static Result<ReportOutput> at(const ReportOptions& options,
                                               std::span<const std::filesystem::path> inputs);

  // Where a document is to be shown: without a page or Markdown in a terminal alone.
  [[nodiscard]] Shown made_for() const { return is_wanted() ? Shown::everywhere : Shown::terminal; }
  // Whether a page has to be made.
  [[nodiscard]] bool is_wanted() const { return file_.has_value() || markdown_; }
  // Instead of the text.
  [[nodiscard]] bool is_markdown() const { return markdown_; }
  // Writes the page where a file was named, and prints Markdown where that was asked for; with the command line that runs.
  [[nodiscard]] Status give(ReportDocument document) const;
  // The same, and prints what Markdown does not replace: `json` where there is any, else the text of the document.
  [[nodiscard]] Status answer(const ReportDocument& document, const std::string& json) const;
  // "Report written to ...", behind the text of an answer.
  void note() const;

 private:
  std::optional<OutputFile> file_;
  bool markdown_ = false;
};

}  // namespace stepcast::cli

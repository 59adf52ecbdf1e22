#include "report_output.h"

#include "stepcast/base/one_line.h"
#include "stepcast/report/html/page.h"

#include "command_line.h"
#include "outputs.h"
#include "verbs.h"

namespace stepcast::cli {

void add_report_options(CLI::App& app, ReportOptions& options, bool& json) {
  add_output_option(
      app, "--report", options.file,
      "also write the answer as one page of HTML with pictures, which loads nothing (docs/reports.md)");
  app.add_option("--format", options.format, "what is printed: text, md (Markdown) or json")
      ->check(CLI::IsMember({"text", "md", "json"}))
      ->capture_default_str()
      ->each([&json](const std::string& format) { json = json || format == "json"; });
}

Result<ReportOutput> ReportOutput::at(const ReportOptions& options,
                                      std::span<const std::filesystem::path> inputs) {
  ReportOutput output;
  output.markdown_ = options.format == "md";
  if (!options.file.empty()) {
    STEPCAST_ASSIGN(output.file_, OutputFile::at(options.file, input_files(inputs)));
  }
  return output;
}

Status ReportOutput::give(ReportDocument document) const {
  document.command = given_command();
  if (markdown_) print("{}", report_markdown(document));
  return file_ ? file_->write(report_html(document)) : Status{Ok{}};
}

Status ReportOutput::answer(const ReportDocument& document, const std::string& json) const {
  if (is_wanted()) STEPCAST_TRY(give(document));
  if (!markdown_) print("{}", json.empty() ? report_text(document) : json);
  return Ok{};
}

void ReportOutput::note() const {
  if (file_ && !markdown_)
    print("\nReport written to {}: open it in a browser\n", in_one_line(file_->path().string()));
}

}  // namespace stepcast::cli

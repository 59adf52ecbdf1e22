// Common functions of verbs that write files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "stepcast/base/output_file.h"
#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"
#include "stepcast/report/document.h"

namespace stepcast::cli {

// Declares an option for an output file.
CLI::Option* add_output_option(CLI::App& app, const std::string& flags, std::string& file,
                               const std::string& help);

// Input files in `places`, to protect them from being overwritten. A folder means all measurements, traces
// and platforms in it and its subfolders.
[[nodiscard]] std::vector<std::filesystem::path> input_files(std::span<const std::filesystem::path> places);

// The names that are existing files.
[[nodiscard]] std::vector<std::filesystem::path> files_among(const std::vector<std::string>& names);

// File names without folders, for provenance: "a.csv, b".
[[nodiscard]] std::string names_of(std::span<const std::string> places);

// The platform file that `calibrate` writes. It extends the platform that it started with. If that platform
// was given as a file and is overwritten, the file keeps its content with the new records, and extends no
// other platform any more, because inherited records may be among its own.
class PlatformOutput {
 public:
  // `base` is the platform of `reference` (--platform); `measurements` are files or folders. Without `file`
  // nothing is written. Errors: the file is a measurement or a platform that the base extends. A part with
  // records only may overwrite a file that the platform extends.
  enum class Content : std::uint8_t { platform, part };
  [[nodiscard]] static Result<PlatformOutput> at(const std::string& file, const std::string& reference,
                                                 const Platform& base,
                                                 std::span<const std::string> measurements,
                                                 Content content = Content::platform);

  // A copy of `base` with the name of the output: `name`, if given.
  [[nodiscard]] Platform begin(const Platform& base, const std::string& name) const;
  // Writes the platform; does nothing if no file was given.
  [[nodiscard]] Status write(const Platform& calibrated, const Platform& base) const;
  // Writes only the records of `part`, with the name of `calibrated`. `calibrated` must be valid with them.
  [[nodiscard]] Status write_part(Platform part, const Platform& calibrated) const;
  // "Written to mine.json", or empty.
  [[nodiscard]] std::string note() const;

 private:
  std::optional<OutputFile> file_;
  std::string reference_;  // as the written file must spell it
  bool is_update_ = false;
};

// --report and --format: the answer of a verb as an HTML page, Markdown or JSON.

struct ReportOptions {
  std::string file, format = "text";
  bool details = false;  // print all sections
};

// Declares the options. --format json also sets `json`.
void add_report_options(CLI::App& app, ReportOptions& options, bool& json);
// Reads --format into `json`, for verbs that declare it themselves.
void read_format(CLI::App& app, bool& json);

class ReportOutput {
 public:
  // Checks the output before the work. Errors: a file that cannot be written, or that is one of `inputs`
  // (files or folders that were read).
  [[nodiscard]] static Result<ReportOutput> at(const ReportOptions& options,
                                               std::span<const std::filesystem::path> inputs);

  // Where the document is shown: only in a terminal, unless a page or Markdown was requested.
  [[nodiscard]] Shown made_for() const { return is_wanted() ? Shown::everywhere : Shown::terminal; }
  // Whether a page or Markdown was requested.
  [[nodiscard]] bool is_wanted() const { return file_.has_value() || replaces_text(); }
  // Whether Markdown or HTML is printed instead of the text.
  [[nodiscard]] bool replaces_text() const { return format_ == "md" || format_ == "html"; }
  // Writes the page if a file was given, and prints the Markdown or HTML that replaces the text. Adds the
  // current command line.
  [[nodiscard]] Status give(ReportDocument document) const;
  // give(), then prints `json` if it is not empty, else the text of the document.
  [[nodiscard]] Status answer(const ReportDocument& document, const std::string& json) const;
  // Prints "Report written to ..." after an answer.
  void note() const;
  // answer() and note(), for verbs that print nothing else.
  [[nodiscard]] Result<int> finish(const ReportDocument& document, const std::string& json) const;

 private:
  std::optional<OutputFile> file_;
  std::string format_ = "text";
  bool details_ = false;
};

// Declares --details for verbs without reports.
void add_details_flag(CLI::App& app, bool& details);
// The text for a terminal: one screen, or with `details` all sections.
[[nodiscard]] std::string terminal_text(const ReportDocument& document, bool details);

}  // namespace stepcast::cli

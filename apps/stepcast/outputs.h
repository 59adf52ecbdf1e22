// What verbs have in common where they write files.
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

// An option that names a file to write.
CLI::Option* add_output_option(CLI::App& app, const std::string& flags, std::string& file,
                               const std::string& help);

// Files that `places` stand for, to keep outputs from being written over them: a folder stands for the
// measurements, traces and platforms in it and below.
[[nodiscard]] std::vector<std::filesystem::path> input_files(std::span<const std::filesystem::path> places);

// Those of the names that are files.
[[nodiscard]] std::vector<std::filesystem::path> files_among(const std::vector<std::string>& names);

// "a.csv, b": how a provenance calls them, without where they lie.
[[nodiscard]] std::string names_of(std::span<const std::string> places);

// The platform file that `calibrate` writes: one that extends the platform it began with or, where that was
// given by its file and is itself to be written, the same one with new records in place of old ones. That
// file then extends nothing any more, as what it took from others may be among what it said itself.
class PlatformOutput {
 public:
  // `base` is what `reference` (--platform) stands for; `measurements` are files or folders. Without a `file`
  // nothing is written. An error if the file is one of the measurements or of those that the platform
  // extends. A part with records alone may be written over one that the platform extends.
  enum class Content : std::uint8_t { platform, part };
  [[nodiscard]] static Result<PlatformOutput> at(const std::string& file, const std::string& reference,
                                                 const Platform& base,
                                                 std::span<const std::string> measurements,
                                                 Content content = Content::platform);

  // `base` under the name of what is written: `name` if given.
  [[nodiscard]] Platform begin(const Platform& base, const std::string& name) const;
  // Nothing if no file was named.
  [[nodiscard]] Status write(const Platform& calibrated, const Platform& base) const;
  // Writes the records of `part` alone, under the name of `calibrated`, which must be sound with them.
  [[nodiscard]] Status write_part(Platform part, const Platform& calibrated) const;
  // "Written to mine.json", or nothing.
  [[nodiscard]] std::string note() const;

 private:
  std::optional<OutputFile> file_;
  std::string reference_;  // as the written file has to say it
  bool is_update_ = false;
};

// --report and --format: the answer of a verb as a page of HTML, as Markdown, as JSON.

struct ReportOptions {
  std::string file, format = "text";
  bool details = false;  // all sections in a terminal
};

// `json` is set by --format json, too.
void add_report_options(CLI::App& app, ReportOptions& options, bool& json);
// That alone, where --format is declared.
void read_format(CLI::App& app, bool& json);

class ReportOutput {
 public:
  // Looks at the file before the work begins. Errors: a file that cannot be written, or that is one of `inputs` (files, or
  // folders with what was read).
  [[nodiscard]] static Result<ReportOutput> at(const ReportOptions& options,
                                               std::span<const std::filesystem::path> inputs);

  // Where a document is to be shown: without a page or Markdown in a terminal alone.
  [[nodiscard]] Shown made_for() const { return is_wanted() ? Shown::everywhere : Shown::terminal; }
  // Whether a page has to be made.
  [[nodiscard]] bool is_wanted() const { return file_.has_value() || replaces_text(); }
  // Markdown or a page, instead of the text.
  [[nodiscard]] bool replaces_text() const { return format_ == "md" || format_ == "html"; }
  // Writes the page where a file was named, and prints what replaces the text; with the command line that runs.
  [[nodiscard]] Status give(ReportDocument document) const;
  // The same, and prints what nothing replaces: `json` where there is any, else the text of the document.
  [[nodiscard]] Status answer(const ReportDocument& document, const std::string& json) const;
  // "Report written to ...", behind the text of an answer.
  void note() const;
  // An answer behind which nothing else is said.
  [[nodiscard]] Result<int> finish(const ReportDocument& document, const std::string& json) const;

 private:
  std::optional<OutputFile> file_;
  std::string format_ = "text";
  bool details_ = false;
};

// --details of a verb without pages.
void add_details_flag(CLI::App& app, bool& details);
// What a terminal shows of an answer: one screen, or all of it.
[[nodiscard]] std::string terminal_text(const ReportDocument& document, bool details);

}  // namespace stepcast::cli

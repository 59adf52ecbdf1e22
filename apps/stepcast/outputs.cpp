#include "outputs.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "stepcast/base/one_line.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/first_screen.h"
#include "stepcast/report/html/page.h"

#include "command_line.h"
#include "option_list.h"
#include "verbs.h"

namespace stepcast::cli {

namespace {

namespace fs = std::filesystem;

bool is_path(std::string_view reference) {
  return reference.find('/') != std::string_view::npos || reference.ends_with(".json");
}

// `reference` as it must be written in the file.
std::string reference_from(const OutputFile& file, const std::string& reference) {
  if (!is_path(reference)) return reference;
  const fs::path base = fs::absolute(reference);
  // An absolute path, for a file that is written under another name or copied from a pipe.
  if (!file.stands_at_its_path()) return base.generic_string();
  return fs::relative(base, fs::absolute(file.path()).parent_path()).generic_string();
}

}  // namespace

CLI::Option* add_output_option(CLI::App& app, const std::string& flags, std::string& file,
                               const std::string& help) {
  return app.add_option(flags, file, help)->type_name("FILE");
}

std::vector<fs::path> input_files(std::span<const fs::path> places) {
  constexpr std::array<std::string_view, 5> kRead = {".csv", ".json", ".gz", ".log", ".txt"};
  std::vector<fs::path> files;
  for (const fs::path& place : places) {
    std::error_code failure;
    if (!fs::is_directory(place, failure)) {
      files.push_back(place);
      continue;
    }
    for (fs::recursive_directory_iterator entry{place, failure}, end; !failure && entry != end;
         entry.increment(failure)) {
      if (std::ranges::find(kRead, entry->path().extension()) != kRead.end()) files.push_back(entry->path());
    }
  }
  return files;
}

std::vector<fs::path> files_among(const std::vector<std::string>& names) {
  std::vector<fs::path> files(names.begin(), names.end());
  std::error_code ignored;
  std::erase_if(files, [&](const fs::path& file) { return !fs::is_regular_file(file, ignored); });
  return files;
}

std::string names_of(std::span<const std::string> places) {
  std::string names;
  for (const std::string& place : places) {
    const fs::path path = fs::path{place}.lexically_normal();
    const fs::path last = path.has_filename() ? path.filename() : path.parent_path().filename();
    names += (names.empty() ? "" : ", ") + last.string();
  }
  return names;
}

Result<PlatformOutput> PlatformOutput::at(const std::string& file, const std::string& reference,
                                          const Platform& base, std::span<const std::string> measurements,
                                          Content content) {
  PlatformOutput output;
  if (file.empty()) return output;
  output.is_update_ = content == Content::platform && is_path(reference) && !base.files.empty() &&
                      is_same_file(base.files.front(), file);
  std::vector<fs::path> inputs = input_files(std::vector<fs::path>(measurements.begin(), measurements.end()));
  for (std::size_t i = output.is_update_ ? 1 : 0; i < base.files.size(); ++i)
    if (i == 0 || content == Content::platform) inputs.push_back(base.files[i]);
  STEPCAST_ASSIGN(output.file_, OutputFile::at(file, inputs));
  output.reference_ = reference_from(*output.file_, reference);
  return output;
}

Platform PlatformOutput::begin(const Platform& base, const std::string& name) const {
  Platform calibrated = base;
  if (!name.empty())
    calibrated.name = name;
  else if (file_ && !is_update_ && file_->is_regular())
    calibrated.name = file_->path().stem().string();
  if (calibrated.name != base.name) calibrated.aliases.clear();  // aliases belong to the base platform
  return calibrated;
}

Status PlatformOutput::write(const Platform& calibrated, const Platform& base) const {
  if (!file_) return Ok{};
  STEPCAST_TRY(calibrated.check());
  return file_->write(is_update_ ? platform_json(calibrated)
                                 : platform_extension_json(calibrated, base, reference_));
}

Status PlatformOutput::write_part(Platform part, const Platform& calibrated) const {
  if (!file_) return Ok{};
  STEPCAST_TRY(calibrated.check());
  part.name = calibrated.name;
  // Includes records that are equal in the base, because the base may read them from the file that is written.
  return file_->write(platform_extension_json(part, Platform{}, {}));
}

std::string PlatformOutput::note() const {
  if (!file_) return {};
  return fmt::format("Written to {}{}", in_one_line(file_->path().string()),
                     is_update_ ? ", with all that it extended" : "");
}

void add_report_options(CLI::App& app, ReportOptions& options, bool& json) {
  FlagList flags{app};
  flags.add(*find_option("--report", kPredictQuestions), &options.file);
  flags.add(*find_option("--format", kPredictQuestions), &options.format);
  add_details_flag(app, options.details);
  read_format(app, json);
}

void add_details_flag(CLI::App& app, bool& details) {
  FlagList flags{app};
  flags.add(*find_option("--details", kPredictQuestions), &details);
}

std::string terminal_text(const ReportDocument& document, bool details) {
  return details ? report_text(document, terminal_columns())
                 : first_screen_text(document, terminal_columns());
}

void read_format(CLI::App& app, bool& json) {
  app.get_option("--format")->each([&json](const std::string& format) { json = json || format == "json"; });
}

Result<ReportOutput> ReportOutput::at(const ReportOptions& options,
                                      std::span<const std::filesystem::path> inputs) {
  ReportOutput output;
  output.format_ = options.format;
  output.details_ = options.details;
  if (!options.file.empty()) {
    STEPCAST_ASSIGN(output.file_, OutputFile::at(options.file, input_files(inputs)));
  }
  return output;
}

Status ReportOutput::give(ReportDocument document) const {
  document.command = given_command();
  if (replaces_text()) print("{}", format_ == "md" ? report_markdown(document) : report_html(document));
  return file_ ? file_->write(report_html(document)) : Status{Ok{}};
}

Status ReportOutput::answer(const ReportDocument& document, const std::string& json) const {
  if (is_wanted()) STEPCAST_TRY(give(document));
  if (!replaces_text()) print("{}", json.empty() ? terminal_text(document, details_) : json);
  return Ok{};
}

Result<int> ReportOutput::finish(const ReportDocument& document, const std::string& json) const {
  STEPCAST_TRY(answer(document, json));
  if (json.empty()) note();
  return kSuccess;
}

void ReportOutput::note() const {
  if (file_ && !replaces_text())
    print("\nReport written to {}: open it in a browser\n", in_one_line(file_->path().string()));
}

}  // namespace stepcast::cli

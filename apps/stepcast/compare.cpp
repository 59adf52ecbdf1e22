// stepcast compare: shows the differences between two steps, from files of any kind.

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/file.h"
#include "stepcast/base/spelled_number.h"

#include "option_list.h"
#include "outputs.h"
#include "progress.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

struct CompareOptions {
  std::string a, b, fail_above;
  bool json = false;
  ReportOptions report;
  std::size_t rows = 10;
};

// "3%" or "3": percent.
Result<double> percent_of(const std::string& text) {
  std::string number = text;
  if (number.ends_with('%')) number.pop_back();
  const std::string wrong = spell_out_number(number);
  constexpr double kMost = 1e6;
  double value = 0;
  if (wrong.empty()) {
    const char* end = number.data() + number.size();
    const auto read = std::from_chars(number.data(), end, value);
    if (read.ec == std::errc{} && read.ptr == end && value >= 0 && value <= kMost) return value;
  }
  return Error::at("", "--fail-above")
      .found(fmt::format("`{}`", text.substr(0, 40)))
      .expected("a share such as 3%");
}

// One of the two files. A pipe, such as <(stepcast predict ... --json), can be read only once.
class Side {
 public:
  explicit Side(std::string file) : file_(std::move(file)) {}

  Result<Forecast> read(const Forecast* beside) {
    std::error_code ignored;
    const std::filesystem::file_status status = std::filesystem::status(file_, ignored);
    const bool is_pipe = std::filesystem::is_fifo(status) || std::filesystem::is_character_file(status);
    if (!is_pipe) return read_result(file_, {.beside = beside});
    if (!text_) {
      constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 28;
      STEPCAST_ASSIGN(text_, read_file(file_, kMostBytes));
    }
    return parse_result_or_log(*text_, file_, {.beside = beside});
  }

 private:
  std::string file_;
  std::optional<std::string> text_;  // the content of a pipe
};

// A log with rates takes the amount of work per step from the other side, whichever side comes first.
Result<std::pair<Forecast, Forecast>> read_pair(const CompareOptions& options) {
  Side side_a{options.a}, side_b{options.b};
  Result<Forecast> a = side_a.read(nullptr);
  Result<Forecast> b = side_b.read(a ? &*a : nullptr);
  if (!b) return a ? std::move(b).error() : std::move(a).error();
  if (!a) a = side_a.read(&*b);
  if (!a) return std::move(a).error();
  return std::pair{*std::move(a), *std::move(b)};
}

Result<int> run_compare(const CompareOptions& options) {
  std::optional<double> limit;
  if (!options.fail_above.empty()) {
    STEPCAST_ASSIGN(limit, percent_of(options.fail_above));
  }
  const std::vector<std::filesystem::path> inputs{options.a, options.b};
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs));
  std::optional<ProgressLine> progress{std::in_place, "compare"};
  STEPCAST_ASSIGN(const auto pair, read_pair(options));
  progress.reset();
  const ComparisonAnswer answer = comparison_answer(options.a, pair.first, options.b, pair.second);
  const ReportDocument document = comparison_document(answer, options.rows);
  STEPCAST_TRY(report.answer(document, options.json ? document.json : std::string{}));
  if (!options.json) report.note();
  const std::optional<double> difference = answer.comparison.step_difference_percent;
  const bool too_far = limit && (!difference || std::abs(*difference) > *limit);
  return too_far ? kDiffers : kSuccess;
}

}  // namespace

Verb compare_verb() {
  return {"compare", "explain the difference between two steps: forecasts, replays, logs, reports",
          [](CLI::App& app) {
            auto options = std::make_shared<CompareOptions>();
            app.footer(
                "Files: output of predict, replay or inspect with --json, HTML reports, or training logs "
                "(docs/logs.md).\nExit code 4: the step times differ by more than --fail-above.");
            app.add_option("A", options->a, "step A, the reference")->required();
            app.add_option("B", options->b, "step B")->required();
            app.add_option(
                "--fail-above", options->fail_above,
                "exit with code 4 if the step time of B differs from A by more than this, such as 3%");
            app.add_option("--rows", options->rows, "number of differences to show per list")
                ->capture_default_str();
            app.add_flag("--json", options->json, "print one JSON object (docs/json.md)");
            add_report_options(app, options->report, options->json);
            return [options] { return run_compare(*options); };
          }};
}

}  // namespace stepcast::cli

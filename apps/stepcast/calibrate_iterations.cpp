// stepcast calibrate iterations: a few global factors from a user's own measured steps.

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/version.h"
#include "stepcast/calibrate/iteration_fit.h"
#include "stepcast/calibrate/llm_runs.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/text_table.h"

#include "calibrate.h"
#include "outputs.h"

namespace stepcast::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string base, output, name, document, date;
  bool json = false;
};

Result<int> run(const Options& options) {
  STEPCAST_ASSIGN(const Platform base, load_platform(options.base));
  STEPCAST_ASSIGN(const PlatformOutput output,
                  PlatformOutput::at(options.output, options.base, base, options.files));
  std::vector<MeasuredStep> steps;
  for (const std::string& file : options.files) {
    STEPCAST_ASSIGN(std::vector<LlmRun> runs, read_llm_runs(file));
    for (LlmRun& run : runs)
      steps.push_back({std::move(run.model), std::move(run.layout), &base, run.iter_time_ms});
  }
  STEPCAST_ASSIGN(const IterationFit fit, fit_iterations(steps));

  Platform platform = output.begin(base, options.name);
  ModelRecord record = step_factors_record(fit.assumptions);
  record.device = base.device.name;
  record.provenance.source = FigureSource::fitted;
  record.provenance.n_rows = fit.n;
  record.provenance.date = options.date;
  record.provenance.document = options.document;
  if (record.provenance.document.empty()) {
    for (const std::string& file : options.files) {
      record.provenance.document +=
          (record.provenance.document.empty() ? "" : ", ") + std::filesystem::path{file}.filename().string();
    }
  }
  platform.set(std::move(record));
  STEPCAST_TRY(output.write(platform, base));

  if (options.json) {
    JsonWriter json{JsonWriter::Layout::indented};
    json.begin_object().field("schema", "stepcast.calibrate_iterations/1").field("version", version());
    json.field("platform", platform.name).field("n", fit.n);
    json.field("mape_before", fit.mape_before).field("mape_after", fit.mape_after);
    json.field("median_ape_before", fit.median_before).field("median_ape_after", fit.median_after);
    json.key("factors").begin_object();
    for (const FittedFactor& f : fitted_factors()) json.field(f.name, fit.assumptions.*(f.member));
    json.end_object();
    json.key("skipped").begin_array();
    for (const std::string& what : fit.skipped) json.value(what);
    json.end_array().end_object();
    fmt::print("{}", std::move(json).text());
    return kSuccess;
  }
  TextTable table{{{"factor", TextTable::Align::left}, {"times"}}};
  for (const FittedFactor& f : fitted_factors()) {
    table.row({std::string{f.name}, table_number(fit.assumptions.*(f.member), 3)});
  }
  fmt::print("{}\n{} steps: mean |error| {:.1f} % before, {:.1f} % after; median {:.1f} %, {:.1f} %\n",
             table.text(), fit.n, fit.mape_before, fit.mape_after, fit.median_before, fit.median_after);
  for (const std::string& what : fit.skipped) fmt::print("left out: {}\n", what);
  fmt::print("{}\n", output.note());
  return kSuccess;
}

}  // namespace

Calibration iterations_calibration() {
  return {"iterations", "a few global factors from measured training steps", [](CLI::App& app) {
            auto options = std::make_shared<Options>();
            app.add_option("CSV", options->files, "measured steps, with the columns of docs/iterations.md")
                ->required();
            app.add_option("--platform", options->base, "platform they ran on; the result extends it")
                ->required();
            add_output_option(app, "-o,--output", options->output,
                              "platform file to write (may be that of --platform)")
                ->required();
            app.add_option("--name", options->name, "name of the new platform (default: of the file)");
            app.add_option("--document", options->document, "where the steps were measured, for the record");
            app.add_option("--date", options->date, "when, for the record");
            app.add_flag("--json", options->json, "print one JSON object (docs/json.md)");
            return [options] { return run(*options); };
          }};
}

}  // namespace stepcast::cli

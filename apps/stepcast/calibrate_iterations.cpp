// stepcast calibrate iterations: fits a few global factors to measured steps of a user.

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/byte_source.h"
#include "stepcast/base/text.h"
#include "stepcast/formats/layout_choice.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/document.h"

#include "calibrate.h"
#include "calibrate/iteration_fit.h"
#include "calibrate/llm_runs.h"
#include "calibration_answers.h"
#include "described_step.h"
#include "outputs.h"

namespace stepcast::cli {
namespace {

struct CalibrateIterationsOptions : PlatformCalibration {
  DescribedStep said;  // for runs with incomplete logs
};

// Errors: a fit that does not explain its own steps, or forecasts that are wrong by orders of magnitude,
// which means that the times are in another unit.
Status check_plausible(const IterationFit& fit) {
  constexpr double kMostError = 50;                        // percent, on the fitted steps
  constexpr double kFarTooLong = 5000, kFarTooShort = 98;  // percent, before the fit
  if (fit.median_before > kFarTooLong) {
    return Error{"the measured steps are far shorter than any forecast"}
        .found(fmt::format("a median error of {:.0f} %", fit.median_before))
        .expected("iter_time_ms in milliseconds")
        .advice("are the times in seconds?");
  }
  if (fit.median_before > kFarTooShort && fit.median_before <= 100 && fit.mape_after > kMostError) {
    return Error{"the measured steps are far longer than any forecast"}
        .found(fmt::format("a median error of {:.0f} %", fit.median_before))
        .expected("iter_time_ms in milliseconds")
        .advice("are the times in microseconds?");
  }
  if (fit.mape_after > kMostError) {
    return Error{"no few factors explain these steps"}
        .found(fmt::format("a mean error of {:.0f} % on the steps themselves after the fit", fit.mape_after))
        .expected(fmt::format("at most {:.0f} %", kMostError))
        .advice("check layouts, sizes and the platform of the rows; nothing was written");
  }
  return Ok{};
}

// A log gives one measured step.
Result<MeasuredStep> step_of_log(const std::string& file, const Job& said, const Platform& base,
                                 std::vector<std::string>& notes) {
  STEPCAST_ASSIGN(const LoggedRun run, read_logged_run(file, said));
  if (!run.resolved) return Error{run.why_no_job};
  if (!run.times.why_no_time.empty()) return Error::at(file, "", run.times.why_no_time);
  if (leaves_layout_open(run.job->job) && run.resolved->layout.world_size() > 1) {
    return Error::at(file, "", "the layout of the run is unknown")
        .advice(
            "give its launch script or config with --command-line, --torchtitan or --deepspeed, or --tp, "
            "--pp and --zero-stage (0: no sharding)");
  }
  for (const std::string& note : run.job->notes) notes.push_back(fmt::format("{}: {}", file, note));
  if (run.times.contradiction)
    notes.push_back(fmt::format("{}: {}", file, contradiction_text(*run.times.contradiction)));
  if (!run.job->gpu.empty() && !could_be_named(run.job->gpu, base.device)) {
    return Error::at(file, "")
        .found(fmt::format("a run on `{}`", run.job->gpu.substr(0, 60)))
        .expected(fmt::format("the GPU of {}, {}", base.name, base.device.name))
        .advice("name the platform that the run was on with --platform");
  }
  return MeasuredStep{run.resolved->model, run.resolved->layout, &base, run.times.median_ms};
}

// Tables of runs have a specific header; every other file is a log.
Result<bool> is_table_of_runs(const std::string& file) {
  STEPCAST_ASSIGN(ByteSource source, ByteSource::open(file));
  std::string beginning(4096, '\0');
  STEPCAST_ASSIGN(const std::size_t n, source.read(beginning.data(), beginning.size()));
  beginning.resize(n);
  const std::string header = lower(std::string_view{beginning}.substr(0, beginning.find('\n')));
  const bool has_steps =
      header.find("step") != std::string::npos || header.find("iteration") != std::string::npos;
  return looks_like_llm_runs(beginning) || !may_be_training_log(beginning) ||
         (file.ends_with(".csv") && !has_steps);
}

Result<std::vector<MeasuredStep>> steps_of_table(const std::string& file, const Platform& base,
                                                 std::vector<std::string>& left_out) {
  STEPCAST_ASSIGN(std::vector<LlmRun> runs, read_llm_runs(file, &left_out));
  std::vector<MeasuredStep> steps;
  for (LlmRun& run : runs) {
    if (!run.gpu.empty() && !could_be_named(run.gpu, base.device)) {
      return Error::at(file, fmt::format("line {}, column gpu", run.line))
          .found(fmt::format("`{}`", run.gpu))
          .expected(fmt::format("the GPU of {}, {}", base.name, base.device.name))
          .advice("name the platform that the steps ran on with --platform");
    }
    steps.push_back({std::move(run.model), std::move(run.layout), &base, run.iter_time_ms});
  }
  return steps;
}

ReportDocument document_of(const CalibratedIterations& answer) {
  const IterationFit& fit = answer.fit;
  ReportTable table{"factor< | times"};
  table.indent = 0;
  for (const FittedFactor& f : fitted_factors()) {
    const bool open = std::ranges::find(fit.undetermined, f.name) != fit.undetermined.end();
    table.row({std::string{f.name}, open ? "not separable with these steps: kept at 1"
                                         : table_number(fit.assumptions.*(f.member), 3)});
  }
  ReportDocument document{.title = "Factors of " + answer.platform};
  document.add(
      "",
      {std::move(table), TerminalText{"\n"},
       ReportText{fmt::format("{} steps: mean |error| {:.1f} % before, {:.1f} % after; median {:.1f} %, "
                              "{:.1f} %",
                              fit.n, fit.mape_before, fit.mape_after, fit.median_before, fit.median_after),
                  0},
       ReportList{answer.notes, "note: "}, ReportList{fit.skipped, "left out: "}});
  return document;
}

Result<CalibratedIterations> fit_files(const CalibrateIterationsOptions& options, const Platform& base) {
  STEPCAST_ASSIGN(const PredictRequest said, request_of(options.said));
  CalibratedIterations answer;
  std::vector<MeasuredStep> steps;
  std::vector<std::string> left_out;  // rows that could not be read
  for (const std::string& file : options.files) {
    STEPCAST_ASSIGN(const bool is_table, is_table_of_runs(file));
    if (is_table) {
      STEPCAST_ASSIGN(std::vector<MeasuredStep> rows, steps_of_table(file, base, left_out));
      std::ranges::move(rows, std::back_inserter(steps));
    } else {
      STEPCAST_ASSIGN(MeasuredStep step, step_of_log(file, said.job, base, answer.notes));
      steps.push_back(std::move(step));
    }
  }
  STEPCAST_ASSIGN(answer.fit, fit_iterations(steps));
  STEPCAST_TRY(check_plausible(answer.fit));
  answer.fit.skipped.insert(answer.fit.skipped.begin(), left_out.begin(), left_out.end());
  return answer;
}

Result<int> run_calibrate_iterations(const CalibrateIterationsOptions& options) {
  STEPCAST_ASSIGN(const Platform base, load_platform(options.base));
  STEPCAST_ASSIGN(const PlatformOutput output,
                  PlatformOutput::at(options.output, options.base, base, options.files));
  STEPCAST_ASSIGN(CalibratedIterations answer, fit_files(options, base));

  Platform platform = output.begin(base, options.name);
  answer.platform = platform.name;
  ModelRecord record = step_factors_record(answer.fit.assumptions);
  record.device = base.device.name;
  record.provenance = options.provenance();
  record.provenance.n_rows = answer.fit.n;
  platform.set(std::move(record));
  STEPCAST_TRY(output.write(platform, base));
  if (options.json)
    print("{}", calibration_json(answer));
  else
    print("{}{}\n", report_text(document_of(answer), terminal_columns()), output.note());
  return kSuccess;
}

}  // namespace

Calibration iterations_calibration() {
  return {
      "iterations", "fit a few global factors to measured training steps", [](CLI::App& app) {
        auto options = std::make_shared<CalibrateIterationsOptions>();
        app.add_option("CSV|LOG", options->files,
                       "measured steps, with the columns of docs/iterations.md, or logs of training runs "
                       "(docs/logs.md)")
            ->required();
        app.add_option("--command-line", options->said.command_line,
                       "logs: command line of the run, or the launch script that contains it");
        app.add_option("--torchtitan", options->said.torchtitan, "logs: TorchTitan job config of the run");
        app.add_option("--deepspeed", options->said.deepspeed, "logs: DeepSpeed config of the run");
        app.add_option("--model", options->said.request.job.model,
                       "logs: preset or Hugging Face config.json");
        app.add_option("--gpus", options->said.request.job.n_gpus, "logs: GPUs of the run");
        JobSettings& settings = options->said.request.job.settings;
        app.add_option("--gbs,--global-batch-size", settings.global_batch_sequences,
                       "logs: sequences per step");
        app.add_option("--seq,--seq-length", settings.seq_len_tokens, "logs: tokens per sequence");
        app.add_option("--mbs,--micro-batch-size", settings.micro_batch_sequences,
                       "logs: sequences per micro-batch");
        app.add_option("--tp,--tensor-model-parallel-size", settings.tensor, "logs: tensor parallel degree");
        app.add_option("--pp,--pipeline-model-parallel-size", settings.pipeline,
                       "logs: pipeline parallel degree");
        app.add_option("--cp,--context-parallel-size", settings.context, "logs: context parallel degree");
        app.add_option("--zero-stage", settings.zero_stage, "logs: ZeRO stage, 0 to 3")
            ->check(CLI::Range(0, 3));
        app.add_option("--platform", options->base, "platform of the runs; the result extends it")
            ->required();
        add_output_option(app, "-o,--output", options->output,
                          "platform file to write (may be that of --platform)")
            ->required();
        app.add_option("--name", options->name, "name of the new platform (default: of the file)");
        app.add_option("--document", options->document, "source of the measured steps, for the provenance");
        app.add_option("--date", options->date, "date of the measurement, for the provenance");
        app.add_flag("--json", options->json, "print one JSON object (docs/json.md)");
        return [options] { return run_calibrate_iterations(*options); };
      }};
}

}  // namespace stepcast::cli

// stepcast replay: simulate recorded ranks, compare with the measured step, show where the time goes.

#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/report/replay_document.h"
#include "stepcast/trace/file_ranks.h"

#include "option_values.h"
#include "outputs.h"
#include "progress.h"
#include "report_output.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

struct Options {
  ReplayRequest request;
  std::string ranks, timeline;
  bool json = false;
  ReplayReportOptions report;
  ReportOptions page;
};

Result<int> run(const Options& options) {
  ReplayRequest request = options.request;
  request.timeline = options.timeline;
  if (!options.ranks.empty()) {
    STEPCAST_ASSIGN(request.ranks, parse_ranks(options.ranks));
  }
  STEPCAST_ASSIGN(const ReportOutput page, ReportOutput::at(options.page, request.places));
  request.pictures = page.is_wanted();
  const Session session;
  std::optional<ProgressLine> progress{std::in_place, "replay"};
  request.progress = progress->reading("replay");
  STEPCAST_ASSIGN(const Replayed replayed, session.replay(request));
  progress.reset();
  if (replayed.analysis == nullptr) {
    STEPCAST_TRY(page.answer(
        forecast_document(replayed.simulated, {.pictures = &replayed.pictures, .made_for = page.made_for()}),
        options.json ? forecast_json(replayed.simulated) : std::string{}));
  } else {
    ReplayReportOptions how = options.report;
    how.pictures = &replayed.pictures;
    how.made_for = page.made_for();
    STEPCAST_TRY(page.answer(replay_document(*replayed.analysis, how),
                             options.json ? replay_json(*replayed.analysis) : std::string{}));
  }
  if (options.json || page.is_markdown()) return kSuccess;
  if (!options.timeline.empty()) print_timeline_note(options.timeline);
  page.note();
  return kSuccess;
}

}  // namespace

Verb replay_verb() {
  return {
      "replay", "simulate recorded ranks and compare with the measured step", [](CLI::App& app) {
        auto options = std::make_shared<Options>();
        app.add_option("DIR|FILES", options->request.places,
                       "a folder with one profiler trace per rank (and their execution traces) or one Chakra "
                       "trace per rank, or the files")
            ->required();
        app.add_option("--step", options->request.step,
                       "number N of ProfilerStep#N (default: the last that all ranks have)");
        app.add_option("--ranks", options->ranks, "only these ranks, e.g. 0,2-5");
        app.add_option("--ranks-from", options->request.ranks_from,
                       "where the rank stands in the files' names: {} in a part of them, as in 'host{}_gpu'");
        app.add_flag("--json", options->json, "print one JSON object (docs/json.md)");
        add_report_options(app, options->page, options->json);
        add_output_option(
            app, "--timeline", options->timeline,
            "write the simulated timeline as Chrome trace JSON, compressed if the name ends in .gz");
        app.add_flag("--with-measured", options->request.timeline_with_measured,
                     "also write the measured timeline");
        app.add_option("--critical-path", options->report.critical_path,
                       "longest contributors of the critical path to show")
            ->capture_default_str();
        app.add_option("--collectives", options->report.collectives,
                       "collectives to show, those that cost most")
            ->capture_default_str();
        app.add_flag("--verbose", options->report.verbose,
                     "also streams, CPU threads, constants with their counts, dependencies by origin");
        app.add_flag(
            "--own-delays", options->request.own_delays,
            "each operation's own recorded launch delay where it is small, instead of the constants");
        app.add_flag("--smallest-handoff", options->request.smallest_handoff,
                     "the smallest latency over ranks for hand-offs between CPU threads");
        app.add_flag("--all-steps", options->request.spread.all_steps,
                     "every recorded step by itself: p50, p90, p99, what their spread comes from");
        app.add_option("--scenarios", options->request.spread.scenarios,
                       "number of straggler scenarios, drawn from the measured steps or ranks")
            ->check(CLI::Range(1, 10000000));
        app.add_option("--seed", options->request.spread.seed, "of the scenarios")->capture_default_str();
        app.add_option("--jitter", options->request.spread.jitter,
                       "draw this instead: 5% (host and GPU), host=10%, gpu=2%, network=20%")
            ->delimiter(',');
        app.add_option("--samples-per-step", options->request.samples_per_step,
                       "samples that all ranks take per step, for throughput and --train-samples")
            ->check(above_zero);
        app.add_option("--tokens-per-step", options->request.tokens_per_step,
                       "tokens that all ranks take per step, for throughput and --train-tokens")
            ->check(above_zero);
        app.add_option("--train-samples", options->request.budget.samples,
                       "samples to train on: steps, days, GPU-hours")
            ->check(above_zero);
        app.add_option("--train-tokens", options->request.budget.tokens, "tokens to train on instead")
            ->check(above_zero);
        app.add_option("--train-iterations", options->request.budget.iterations, "steps to train instead")
            ->check(above_zero);
        app.add_option("--gpu-hour-price", options->request.budget.price_per_gpu_hour, "price of a GPU-hour")
            ->check(above_zero);
        app.add_option("--gpu-power-watts", options->request.budget.power_per_gpu_W,
                       "power of a GPU with its share of the host")
            ->check(above_zero);
        app.add_option("--threads", options->request.threads, "threads to read with (0: all)")
            ->capture_default_str();
        return [options] { return run(*options); };
      }};
}

}  // namespace stepcast::cli

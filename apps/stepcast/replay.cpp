// stepcast replay: simulate recorded ranks, compare with the measured step, show where the time goes.

#include "stepcast/predict/replay.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/predict/trace_set.h"
#include "stepcast/report/perfetto.h"
#include "stepcast/report/replay_report.h"

#include "outputs.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

struct Options {
  std::vector<std::filesystem::path> places;
  std::optional<std::int64_t> step;
  std::string ranks;
  bool json = false;
  std::string timeline;
  bool with_measured = false;
  bool own_delays = false;
  bool smallest_handoff = false;
  unsigned threads = 0;
  ReplayReportOptions report;
};

Result<int> run(const Options& options) {
  TraceSetOptions reading;
  reading.threads = options.threads;
  if (!options.ranks.empty()) {
    STEPCAST_ASSIGN(reading.ranks, parse_ranks(options.ranks));
  }
  if (options.with_measured && options.timeline.empty()) {
    return Error{
        "--with-measured needs --timeline FILE: it puts the measured timeline beside the simulated one"};
  }
  STEPCAST_ASSIGN(const TraceListing listing, list_traces(options.places));
  std::optional<OutputFile> timeline;
  if (!options.timeline.empty()) {
    std::vector<std::filesystem::path> inputs = listing.profiler;
    inputs.insert(inputs.end(), listing.execution.begin(), listing.execution.end());
    STEPCAST_ASSIGN(timeline, OutputFile::at(options.timeline, inputs));
  }
  STEPCAST_ASSIGN(const TraceSet traces, read_trace_set(listing, reading));

  ReplayOptions how;
  how.rebuild.step = options.step;
  how.rebuild.own_delays = options.own_delays;
  how.rebuild.smallest_handoff = options.smallest_handoff;
  STEPCAST_ASSIGN(const Replay result, replay(traces.inputs(), how));
  STEPCAST_ASSIGN(const ReplayTimes times, replay_times(result));
  STEPCAST_ASSIGN(const ReplayAnalysis analysis, analyze_replay(traces, result, times));

  if (timeline) {
    STEPCAST_TRY(write_perfetto(*timeline, times.flat, times.costs, times.simulated,
                                options.with_measured ? &times.measured : nullptr));
  }
  fmt::print("{}", options.json ? replay_json(analysis) : replay_text(analysis, options.report));
  if (timeline && !options.json) {
    fmt::print("\nTimeline written to {}: open it at https://ui.perfetto.dev\n", options.timeline);
  }
  return kSuccess;
}

}  // namespace

Verb replay_verb() {
  return {
      "replay", "simulate recorded ranks and compare with the measured step", [](CLI::App& app) {
        auto options = std::make_shared<Options>();
        app.add_option("DIR|FILES", options->places,
                       "a folder with one profiler trace per rank (and their execution traces), or the files")
            ->required();
        app.add_option("--step", options->step,
                       "number N of ProfilerStep#N (default: the last that all ranks have)");
        app.add_option("--ranks", options->ranks, "only these ranks, e.g. 0,2-5");
        app.add_flag("--json", options->json, "print one JSON object (docs/json.md)");
        add_output_option(
            app, "--timeline", options->timeline,
            "write the simulated timeline as Chrome trace JSON, compressed if the name ends in .gz");
        app.add_flag("--with-measured", options->with_measured, "put the measured timeline beside it");
        app.add_option("--critical-path", options->report.critical_path,
                       "longest contributors of the critical path to show")
            ->capture_default_str();
        app.add_option("--collectives", options->report.collectives,
                       "collectives to show, those that cost most")
            ->capture_default_str();
        app.add_flag("--verbose", options->report.verbose,
                     "also streams, CPU threads, constants with their counts, dependencies by origin");
        app.add_flag(
            "--own-delays", options->own_delays,
            "each operation's own recorded launch delay where it is small, instead of the constants");
        app.add_flag("--smallest-handoff", options->smallest_handoff,
                     "the smallest latency over ranks for hand-offs between CPU threads");
        app.add_option("--threads", options->threads, "threads to read with (0: all)")->capture_default_str();
        return [options] { return run(*options); };
      }};
}

}  // namespace stepcast::cli

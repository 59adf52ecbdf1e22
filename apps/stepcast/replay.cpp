// stepcast replay: simulates recorded ranks, compares them with the measured step, and shows where the time goes.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/report/replay_document.h"
#include "stepcast/trace/file_ranks.h"

#include "given_flags.h"
#include "option_list.h"
#include "outputs.h"
#include "progress.h"
#include "trace_changes.h"
#include "verbs.h"

namespace stepcast::cli {
namespace {

struct ReplayOptions {
  ReplayRequest request;
  std::string ranks, timeline;
  bool json = false;
  std::string advice{};  // "on", "off"; empty: on for the command line only
  ReplayReportOptions report;
  ReportOptions page;
};

// The words of `predict` for the same step.
std::vector<std::string> words_of_step(const ReplayOptions& o) {
  std::vector<std::string> words{"predict", "--trace"};
  for (const std::filesystem::path& place : o.request.places) words.push_back(place.string());
  const auto say = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {flag, value});
  };
  say("--step", o.request.step ? fmt::format("{}", *o.request.step) : "");
  say("--ranks", o.ranks);
  say("--ranks-from", o.request.ranks_from);
  return words;
}

// Adds suggestions to an answer.
void add_advice(const ReplayOptions& options, const Session& session, const KeptStep& step,
                Replayed& replayed) {
  std::shared_ptr<ReplayAnalysis> analysis =
      replayed.analysis == nullptr ? nullptr : std::make_shared<ReplayAnalysis>(*replayed.analysis);
  const std::string_view awaited =
      analysis == nullptr || analysis->awaited.empty() ? std::string_view{} : analysis->awaited.front().op;
  replayed.simulated.what_to_change =
      what_to_change(words_of_step(options), {session, step, replayed.simulated, awaited});
  if (analysis == nullptr) return;
  analysis->simulated.what_to_change = replayed.simulated.what_to_change;
  replayed.analysis = std::move(analysis);
}

Result<int> run_replay(const ReplayOptions& options) {
  ReplayRequest request = options.request;
  request.timeline = options.timeline;
  if (!options.ranks.empty()) {
    STEPCAST_ASSIGN(request.ranks, parse_ranks(options.ranks));
  }
  ReportOptions shown = options.page;
  shown.details = shown.details || options.report.verbose;
  STEPCAST_ASSIGN(const ReportOutput page, ReportOutput::at(shown, request.places));
  request.pictures = page.is_wanted();
  const Session session;
  std::optional<ProgressLine> progress{std::in_place, "replay"};
  request.progress = progress->reading("replay");
  std::shared_ptr<const KeptStep> kept;
  if (wants_advice(options.advice) && !request.own_delays)  // `predict` does not have this option
    request.keeps = [&](std::shared_ptr<const KeptStep> step) { kept = std::move(step); };
  STEPCAST_ASSIGN(Replayed replayed, session.replay(request));
  if (kept != nullptr) add_advice(options, session, *kept, replayed);
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
  if (options.json || page.replaces_text()) return kSuccess;
  if (!options.timeline.empty()) print_timeline_note(options.timeline);
  page.note();
  return kSuccess;
}

void add_flags(CLI::App& app, ReplayOptions& o) {
  ReplayRequest& r = o.request;
  FlagList flags{app};
  flags.add("DIR|FILES", &r.places,
            "folder with one profiler trace per rank (and execution traces) or one Chakra trace per rank, or "
            "the files",
            {.required = true});
  constexpr QuestionSet kOf = bit(Question::traces);  // options shared with `predict --trace`
  flags.add(*find_option("--step", kOf), &r.step);
  flags.add(*find_option("--ranks", kOf), &o.ranks);
  flags.add("--ranks-from", &r.ranks_from,
            "position of the rank in the file names: {} in a part of them, such as 'host{}_gpu'");
  flags.add(*find_option("--advice", kOf), &o.advice);
  flags.add("--json", &o.json, "print one JSON object (docs/json.md)");
  add_report_options(app, o.page, o.json);
  flags.add("--timeline", &o.timeline,
            "write the simulated timeline for ui.perfetto.dev: .pftrace is protobuf, else Chrome trace JSON; "
            ".gz compresses",
            {.is_output = true});
  flags.add("--with-measured", &r.timeline_with_measured, "also write the measured timeline");
  flags.add("--critical-path", &o.report.critical_path, "number of contributors to the critical path to show",
            {.shows_default = true});
  flags.add("--collectives", &o.report.collectives, "number of collectives to show, most expensive first",
            {.shows_default = true});
  flags.add("--verbose", &o.report.verbose,
            "also print streams, CPU threads, constants with their counts, dependencies by origin");
  flags.add("--own-delays", &r.own_delays,
            "use the recorded launch delay of each operation if it is small, instead of the constants");
  flags.add("--smallest-handoff", &r.smallest_handoff,
            "use the smallest latency over ranks for hand-offs between CPU threads");
}

void add_spread_and_training(CLI::App& app, ReplayOptions& o) {
  SpreadRequest& spread = o.request.spread;
  TrainingBudget& budget = o.request.budget;
  const OptionValues above{.above_zero = true};
  FlagList flags{app};
  constexpr QuestionSet kOf = bit(Question::traces);
  flags.add(*find_option("--all-steps", kOf), &spread.all_steps);
  flags.add(*find_option("--scenarios", kOf), &spread.scenarios);
  flags.add(*find_option("--seed", kOf), &spread.seed);
  flags.add(*find_option("--jitter", kOf), &spread.jitter);
  flags.add("--samples-per-step", &o.request.samples_per_step,
            "samples per step of all ranks, for throughput and --train-samples", above);
  flags.add("--tokens-per-step", &o.request.tokens_per_step,
            "tokens per step of all ranks, for throughput and --train-tokens", above);
  flags.add("--train-samples", &budget.samples, "samples to train on: steps, days, GPU-hours", above);
  flags.add("--train-tokens", &budget.tokens, "tokens to train on instead", above);
  flags.add("--train-iterations", &budget.iterations, "steps to train instead", above);
  flags.add(*find_option("--gpu-hour-price", kOf), &budget.price_per_gpu_hour);
  flags.add(*find_option("--currency", kOf), &budget.currency);
  flags.add("--gpu-power-watts", &budget.power_per_gpu_W, "power of a GPU with its share of the host", above);
  flags.add(*find_option("--carbon-intensity", kOf), &budget.carbon_g_per_kWh);
  flags.add("--threads", &o.request.threads, "threads to read with (0: all)", {.shows_default = true});
}

}  // namespace

Verb replay_verb() {
  return {"replay", "simulate recorded ranks and compare with the measured step", [](CLI::App& app) {
            auto options = std::make_shared<ReplayOptions>();
            add_flags(app, *options);
            add_spread_and_training(app, *options);
            return [options] { return run_replay(*options); };
          }};
}

}  // namespace stepcast::cli

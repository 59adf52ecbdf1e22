#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/parallel.h"
#include "stepcast/predict/replay.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/sources/trace_set.h"

#include "lab/cadence.h"
#include "lab/recorded_job.h"
#include "lab/replay_scores.h"
#include "lab/round_trip.h"
#include "lab/step_scores.h"
#include "lab/suites.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// The tests of the suite, in order of output.
StepScores replay_scores() {
  struct Kind {
    std::string_view name, unit = "ms";
    bool relative = true;
  };
  StepScores scores;
  for (const auto& [name, unit, relative] :
       {Kind{"step_time"}, Kind{"gpu_window"}, Kind{"global_window"}, Kind{"kernel_starts", "us", false},
        Kind{"collective_waits", "us", false}, Kind{"unexplained_wait", "percent", false},
        Kind{"time_with_a_cause"}, Kind{"clock_offsets", "collectives"},
        Kind{"gpu_lateness", "percent", false}, Kind{"naive"}, Kind{"naive_gpu_window"},
        Kind{"smallest_handoff"}, Kind{"whole_trace"}, Kind{"round_trip"},
        Kind{"inferred_events", "edges", false}, Kind{"period"}, Kind{"operator_timeline"},
        Kind{"operator_timeline_no_delay"}}) {
    TestScore& test = scores.test(name);
    test.unit = unit;
    test.relative = relative;
  }
  return scores;
}

void add_lateness(StepScores& scores, const std::string& set, const std::string& row,
                  const ReplayedRank& rank, const RecordedStepFacts& facts) {
  const double step_us = rank.step.measured_us > 0 ? rank.step.measured_us : 1;
  const double late_percent = 100 * facts.gpu_late_us / step_us;
  scores.add("gpu_lateness", set, {row, 0, late_percent});
  scores.keep("gpu_lateness", set, "max_percent_of_step", late_percent, ExtraMetric::Over::max);
  const auto count = [&](std::string_view name, std::uint32_t n) {
    scores.keep("gpu_lateness", set, name, n, ExtraMetric::Over::sum);
  };
  count("late_n", facts.late_gpu_work);
  count("graph_node_n", facts.graph_nodes);
  count("overlapping_n", facts.overlapping_kernels);
  count("kept_start_n", facts.kept_starts);
  count("warned_n", is_far_off(rank) ? 1 : 0);
}

// Reason from the traces for time without a known cause.
std::string why_without_cause(const RecordedProgram& recorded) {
  for (const std::string& note : recorded.notes)
    if (note.find("kernels are missing in this trace") != std::string::npos) return note;
  const auto kept = [](const RecordedStepFacts& facts) { return facts.kept_starts > 0; };
  if (std::ranges::any_of(recorded.facts, kept))
    return "its GPU still works on what was launched before the file begins, and the file does not hold that";
  return "not known";
}

// Scores the mean step of the ranks without the time of unknown cause. If that is much, adds the reason that the traces
// give.
void add_causes(StepScores& scores, const std::string& set, const Replay& replay,
                std::vector<Skipped>& skipped) {
  constexpr double kMuchWithoutCause = 0.05;
  const Result<StepCulprits> culprits = culprits_of(replay);
  if (!culprits.ok()) return;
  const double step_us = culprits->step_us();
  const std::int64_t step = replay.recorded.facts.front().step_number;
  const std::string row = step < 0 ? "whole trace" : fmt::format("step {}", step);
  const double without_us = culprits->of(Culprit::rest);
  scores.add("time_with_a_cause", set, row_of(row, step_us, step_us - without_us));
  if (without_us > kMuchWithoutCause * step_us) {
    skipped.push_back({fmt::format("{} {} time_with_a_cause", set, row),
                       fmt::format("{:.1f} % has no cause: {}", 100 * without_us / step_us,
                                   why_without_cause(replay.recorded))});
  }
}

// Twenty draws of clock offsets for each largest offset.
Status add_clock_offsets(StepScores& scores, const std::string& set, const TraceSet& traces,
                         unsigned threads) {
  if (traces.ranks.size() < 2) return Ok{};
  constexpr std::size_t kDraws = 20;
  STEPCAST_ASSIGN(const std::vector<ClockDraws> all, draw_clock_offsets(traces, kDraws, threads));
  for (const ClockDraws& drawn : all) {
    scores.add("clock_offsets", set,
               {fmt::format("clocks differ by up to {} us", drawn.most_us),
                static_cast<double>(drawn.collectives), static_cast<double>(drawn.most_other)});
    const auto sum = [&](std::string_view name, std::size_t n) {
      scores.keep("clock_offsets", set, name, static_cast<double>(n), ExtraMetric::Over::sum);
    };
    sum("draw_n", drawn.draws);
    const std::size_t wrong = drawn.draws - drawn.named_right - drawn.said_not_known;
    scores.keep("clock_offsets", set, "wrong_pct",
                100.0 * static_cast<double>(wrong) / static_cast<double>(drawn.draws),
                ExtraMetric::Over::max);
    sum("culprit_right_n", drawn.named_right);
    sum("said_not_known_n", drawn.said_not_known);
    scores.keep("clock_offsets", set, "largest_share_error", drawn.largest_share_error,
                ExtraMetric::Over::max);
  }
  return Ok{};
}

void add_step(StepScores& scores, const std::string& set, const Replay& replay,
              std::vector<Skipped>& skipped) {
  add_causes(scores, set, replay, skipped);
  const std::vector<RecordedStepFacts>& facts = replay.recorded.facts;
  for (std::size_t c = 0; c < replay.ranks.size(); ++c) {
    const ReplayedRank& rank = replay.ranks[c];
    const std::string row = row_name(facts[c]);
    const auto add_pair = [&](std::string_view test, const TimePair& pair) {
      scores.add(test, set, row_of(row, pair.measured_us, pair.simulated_us));
    };
    add_lateness(scores, set, row, rank, facts[c]);
    if (facts[c].step_number < 0) {
      add_pair("whole_trace", rank.step);
      continue;
    }
    add_pair("step_time", rank.step);
    add_pair("gpu_window", rank.gpu_window);
    for (const ReplayVariant& variant : replay.variants) {
      add_pair(variant.name, variant.step[c]);
      if (variant.name == "naive") add_pair("naive_gpu_window", variant.gpu_window[c]);
    }
    scores.add("kernel_starts", set, {row, 0, rank.kernel_start.median_us});
    const double step_us = rank.step.measured_us > 0 ? rank.step.measured_us : 1;
    scores.add("unexplained_wait", set, {row, 0, 100 * facts[c].unexplained_wait_us / step_us});
    using Over = ExtraMetric::Over;
    const auto keep = [&](std::string_view test, std::string_view name, double value, Over over) {
      scores.keep(test, set, name, value, over);
    };
    keep("kernel_starts", "worst_median_us", rank.kernel_start.median_us, Over::max);
    keep("kernel_starts", "worst_p95_us", rank.kernel_start.p95_us, Over::max);
    keep("kernel_starts", "max_us", rank.kernel_start.max_us, Over::max);
    const double handoff =
        facts[c].kept_delay_us[static_cast<std::size_t>(EdgeOrigin::thread_handoff)] / step_us * 100;
    const double busy =
        facts[c].kept_delay_us[static_cast<std::size_t>(EdgeOrigin::device_busy)] / step_us * 100;
    keep("unexplained_wait", "max_percent_of_step", 100 * facts[c].unexplained_wait_us / step_us, Over::max);
    keep("unexplained_wait", "max_kept_handoff_percent_of_step", handoff, Over::max);
    keep("unexplained_wait", "max_kept_busy_percent_of_step", busy, Over::max);
  }
  if (replay.ranks.size() > 1 && facts.front().step_number >= 0) {
    scores.add("global_window", set,
               row_of(fmt::format("step {}", facts.front().step_number), replay.global_window.measured_us,
                      replay.global_window.simulated_us));
  }
  for (const CollectiveWait& wait : replay.collective_waits) {
    const RecordedStepFacts& of = facts[wait.rank_class.index()];
    scores.add("collective_waits", set,
               {fmt::format("collective {} {}", wait.collective.index(), row_name(of)), wait.recorded_us,
                wait.simulated_us});
    scores.keep("collective_waits", set, "agree_n", wait.agrees() ? 1 : 0, ExtraMetric::Over::sum);
    scores.keep("collective_waits", set, "max_us", std::abs(wait.simulated_us - wait.recorded_us),
                ExtraMetric::Over::max);
  }
}

// Scores every step separately and keeps only the scores. False if no step could be replayed.
Result<bool> score_steps(StepScores& scores, const std::string& set, std::span<const RecordedInput> inputs,
                         std::span<const std::optional<std::int64_t>> steps, unsigned threads,
                         std::vector<Skipped>& skipped) {
  constexpr std::size_t kAtOnce = 16;  // replays in memory
  bool any = false;
  for (std::size_t first = 0; first < steps.size(); first += kAtOnce) {
    const auto some = steps.subspan(first, std::min(kAtOnce, steps.size() - first));
    std::vector<std::optional<Result<Replay>>> replays(some.size());
    STEPCAST_TRY(parallel_for(some.size(), threads, [&](std::size_t i) -> Status {
      ReplayOptions how;
      how.rebuild.step = some[i];
      replays[i].emplace(replay(inputs, how));
      return Ok{};
    }));
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (replays[i]->ok()) {
        any = true;
        add_step(scores, set, replays[i]->value(), skipped);
      } else {
        skipped.push_back({some[i] ? fmt::format("{} step {}", set, *some[i]) : set,
                           message_without_file(replays[i]->error())});
      }
    }
  }
  return any;
}

// Round trips of the last step of the set through changed scenarios. Returns errors.
std::vector<Skipped> add_round_trips(StepScores& scores, const std::string& set,
                                     std::span<const RecordedInput> inputs, unsigned threads) {
  const std::vector<RoundTripScenario> scenarios = standard_round_trips(inputs.size());
  std::vector<std::optional<Result<RoundTripResult>>> results(scenarios.size());
  std::vector<Skipped> skipped;
  // Each round trip keeps a second copy of the trace, one of them also as text: of large traces only one runs at a time.
  constexpr std::uint64_t kManyEvents = 1'000'000;
  std::uint64_t events = 0;
  for (const RecordedInput& input : inputs) events += input.kineto->event_count;
  const unsigned at_once = events > kManyEvents ? 1 : threads;
  const Status done = parallel_for(scenarios.size(), at_once, [&](std::size_t i) -> Status {
    results[i].emplace(round_trip(inputs, scenarios[i]));
    return Ok{};
  });
  if (!done.ok()) return {{set + " round trip", message_without_file(done.error())}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]->ok()) {
      skipped.push_back({fmt::format("{} round trip {}", set, scenarios[i].name),
                         message_without_file(results[i]->error())});
      continue;
    }
    const RoundTripResult& result = results[i]->value();
    for (const RoundTripResult::RankEnd& end : result.ends) {
      scores.add("round_trip", set,
                 row_of(fmt::format("{} rank {}", result.scenario, end.rank), end.step_us,
                        end.step_us + end.error_us()));
    }
    scores.keep("round_trip", set, "worst_kernel_start_p95_us", result.kernel_start_error_quantile_us(0.95),
                ExtraMetric::Over::max);
    scores.keep("round_trip", set, "lost_n", static_cast<double>(result.lost), ExtraMetric::Over::sum);
  }
  return skipped;
}

// Ranks with recorded events of waits: scores how many of these waits are found without the records.
void add_inferred_events(StepScores& scores, const std::string& set, const TraceSet& traces) {
  for (std::size_t i = 0; i < traces.ranks.size(); ++i) {
    const std::vector<EventEdge> truth = recorded_event_edges(traces.ranks[i]);
    if (truth.empty()) continue;
    const RecordedRank blind = without_sync_records(traces.ranks[i]);
    const RecordedInput input{&blind, traces.execution_traces[i] ? &*traces.execution_traces[i] : nullptr};
    const Result<RecordedProgram> program = rebuild_program(std::span{&input, 1});
    if (!program.ok()) continue;  // named as not replayed already
    const InferenceScore score = score_event_edges(traces.ranks[i], truth, event_edges(*program, 0));
    if (score.true_edges == 0 && score.inferred_edges == 0) continue;
    scores.add("inferred_events", set,
               {fmt::format("rank {}", program->facts.front().rank), static_cast<double>(score.true_edges),
                static_cast<double>(score.found)});
    using Over = ExtraMetric::Over;
    scores.keep("inferred_events", set, "true_n", static_cast<double>(score.true_edges), Over::sum);
    scores.keep("inferred_events", set, "found_n", static_cast<double>(score.found), Over::sum);
    scores.keep("inferred_events", set, "inferred_n", static_cast<double>(score.inferred_edges), Over::sum);
    scores.keep("inferred_events", set, "right_n", static_cast<double>(score.right), Over::sum);
  }
}

Status add_pipeline(StepScores& scores, const fs::path& file, const fs::path& data) {
  STEPCAST_ASSIGN(const std::vector<PipelineStepScore> steps, score_pipeline(file));
  const std::string name = relative_name(file, data);
  for (const PipelineStepScore& step : steps) {
    const auto add = [&](std::string_view test, const TimePair& pair) {
      scores.add(test, name, row_of(fmt::format("step {}", step.step), pair.measured_us, pair.simulated_us));
    };
    add("operator_timeline", step.delayed);
    if (step.without_delay) add("operator_timeline_no_delay", *step.without_delay);
  }
  return Ok{};
}

// Largest standard deviation over the mean: with more, no single step is typical.
constexpr double kSteadyCadence = 0.03;

// Compares the prediction without a change with the cadence of the job.
Status add_period(StepScores& scores, const std::string& name, const TraceSet& set) {
  const std::optional<Cadence> cadence = recorded_cadence(set);
  if (!cadence || cadence->spread > kSteadyCadence) return Ok{};
  STEPCAST_ASSIGN(const double answered_us, answered_period_us(set));
  scores.add("period", name,
             row_of(fmt::format("{} steps", cadence->steps), cadence->recorded_us, answered_us));
  return Ok{};
}

}  // namespace

Result<SuiteResult> validate_replay(const fs::path& data, const SuiteOptions& options) {
  if (!options.protocol.empty() && options.protocol != "recorded")
    return Error{fmt::format("the replay suite has no protocol '{}'", options.protocol)}.expected("recorded");
  STEPCAST_ASSIGN(const std::vector<fs::path> folders, folders_of(data));
  SuiteResult result{.suite = "replay"};
  StepScores scores = replay_scores();
  std::size_t sets_found = 0;
  for (const fs::path& folder : folders) {
    const std::vector<fs::path> place{folder};
    const Result<TraceListing> listing = list_traces(place);
    if (!listing.ok()) {
      if (folder == data) return listing.error();
      result.skipped.push_back({relative_name(folder, data), message_without_file(listing.error())});
      continue;
    }
    for (const fs::path& file : listing->of(SourceKindId::pipeline)) {
      const Status scored = add_pipeline(scores, file, data);
      if (scored.ok())
        ++sets_found;
      else
        result.skipped.push_back({relative_name(file, data), message_without_file(scored.error())});
    }
    std::vector<TraceListing::Other> not_read;
    const std::vector<TraceSet> sets =
        read_trace_sets(*listing, {.ranks = {}, .threads = options.threads}, not_read);
    for (const TraceListing::Other& other : not_read)
      result.skipped.push_back({relative_name(other.file, data), other.why});
    for (const TraceSet& set : sets) {
      ++sets_found;
      const std::string name = relative_name(set.name, data);
      std::vector<std::optional<std::int64_t>> steps;
      for (const std::int64_t step : common_steps(set)) steps.emplace_back(step);
      if (steps.empty()) steps.emplace_back();  // the whole trace
      std::vector<RecordedInput> inputs = set.inputs();
      for (RecordedInput& input : inputs) input.index = index_trace(input);
      STEPCAST_ASSIGN(const bool any,
                      score_steps(scores, name, inputs, steps, options.threads, result.skipped));
      if (!any) continue;
      if (steps.front())
        for (Skipped& trip : add_round_trips(scores, name, inputs, options.threads))
          result.skipped.push_back(std::move(trip));
      add_inferred_events(scores, name, set);
      const Status answered = add_period(scores, name, set);
      if (!answered.ok())
        result.skipped.push_back({name + " period", message_without_file(answered.error())});
      const Status drawn = add_clock_offsets(scores, name, set, options.threads);
      if (!drawn.ok())
        result.skipped.push_back({name + " clock offsets", message_without_file(drawn.error())});
    }
  }
  if (sets_found == 0) {
    return Error::at(data.string(), "no profiler trace here or in a folder below")
        .expected("Kineto traces, *.json or *.json.gz");
  }
  result.tests = std::move(scores).finish();
  return result;
}

}  // namespace stepcast

// Replay: simulates recorded ranks with their recorded durations and compares the result with the recorded
// times.
//
// Waiting is not replayed; it must follow from the dependencies (see rebuild/recorded_program.h). The scores
// therefore measure whether the dependencies are right. The naive replay is scored too, as a baseline: waits
// are cut to their base cost, and GPU work has no dependencies.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {

// How a recording is rebuilt and replayed.
struct ReplayOptions {
  RebuildOptions rebuild;         // structure of the program
  bool smallest_handoff = false;  // costs: SmallestHandoffs instead of the recorded ones
  // Also score the naive replay and the replay with the smallest hand-off latency.
  bool compare_variants = true;
};

// A measured time and its simulated counterpart, in microseconds.
struct TimePair {
  double measured_us = 0;
  double simulated_us = 0;
  // (simulated - measured) / measured; 0 if nothing was measured.
  [[nodiscard]] double error() const {
    return measured_us > 0 ? (simulated_us - measured_us) / measured_us : 0;
  }
};

// Distribution of the absolute errors of start times, in microseconds.
struct ErrorSpread {
  std::uint64_t n = 0;
  double median_us = 0;
  double p95_us = 0;
  double max_us = 0;
};
// `errors_us` must be absolute. Quantiles are nearest-rank.
[[nodiscard]] ErrorSpread error_spread(std::vector<double> errors_us);

// The scores of one rank.
struct ReplayedRank {
  RankClassId rank_class;
  std::int32_t rank = 0;
  Interval simulated_step;  // on the clock of the timeline
  TimePair step;            // length of the step
  TimePair gpu_window;      // from the start of the step to the end of the last GPU work launched in it
  // Idle time of the thread that ends the simulated step, in microseconds. It results only from dependencies.
  double simulated_wait_us = 0;
  ErrorSpread kernel_start;  // GPU work launched in the step, relative to the step's start
};

// Whether a replay is too inaccurate for what-ifs: the step is off by more than 2 %, or the start times of
// its GPU work (95th percentile) by more than 1 % of the step.
[[nodiscard]] bool is_far_off(const ReplayedRank& rank);

// The time that one rank waits in a collective for the others: its stay minus the shortest stay of all
// members.
struct CollectiveWait {
  CollectiveId collective;
  RankClassId rank_class;
  double recorded_us = 0;
  double simulated_us = 0;
  // Whether the simulated wait is within 5 % + 20 us of the recorded one.
  [[nodiscard]] bool agrees() const;
};

// The scores of the same traces under other rules.
struct ReplayVariant {
  std::string name;                  // "naive", "smallest_handoff"
  std::vector<TimePair> step;        // [rank class]
  std::vector<TimePair> gpu_window;  // [rank class]
  TimePair global_window;
};

// How close a simulation of a rebuilt program is to its recording.
struct ReplayScores {
  Timeline timeline;
  std::vector<ReplayedRank> ranks;  // [rank class]
  TimePair global_window;  // from the earliest start of a step to the last end of a step or of its GPU work
  // The intervals of global_window; without ranks: from infinity to minus infinity.
  Interval measured_window, simulated_window;
  ErrorSpread kernel_start;                      // over all ranks
  std::vector<CollectiveWait> collective_waits;  // of collectives with two or more ranks

  // The simulated step time of the job: the longest step of all ranks, each from its own begin to its own
  // end.
  [[nodiscard]] double longest_step_us() const;
};
// One sentence if ranks differ much from their recording (is_far_off), with the unexplained time of the worst
// rank; nullopt otherwise. `scores` must be those of the recorded costs.
[[nodiscard]] std::optional<std::string> far_off_warning(const RecordedProgram& recorded,
                                                         const ReplayScores& scores);
// Simulates with `costs`, which may differ from the recorded ones, and compares with the recording.
[[nodiscard]] Result<ReplayScores> score_replay(const RecordedProgram& recorded, const Costs& costs);

// The result of a replay with its program.
struct Replay : ReplayScores {
  RecordedProgram recorded;
  Costs costs{recorded.program};        // those of `timeline`
  std::vector<ReplayVariant> variants;  // variants that could be built; `recorded.notes` names the others
};

// Rebuilds the program of the recorded ranks and scores its replay.
[[nodiscard]] Result<Replay> replay(std::span<const RecordedInput> inputs, const ReplayOptions& options = {});

// The same for a Program that was already rebuilt (rebuild/pipeline_program.h). `options.rebuild` is ignored.
[[nodiscard]] Result<Replay> replay_recorded(RecordedProgram program, const ReplayOptions& options = {});

// The interval of the step of rank class c in a timeline of its Program. It starts as long after the rank's
// start as recorded, and ends with the task that ends it.
[[nodiscard]] Interval simulated_step(const RecordedProgram& recorded, const Timeline& timeline,
                                      RankClassId c);

// [task of the block] GPU work launched before the recorded window. It enters the simulation at its recorded
// time.
[[nodiscard]] std::vector<bool> left_over_tasks(const Block& block);

}  // namespace stepcast

// Replay: recorded ranks simulated with their recorded durations, and how close that comes to what was
// measured.
//
// Waiting is not replayed, it has to come out of the dependencies: see trace/recorded_program.h. So the
// scores say whether the dependencies are right. The naive replay (waits cut to their base cost, no
// dependencies of GPU work) stands beside them to show how much there was to get right.
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

struct ReplayOptions {
  RebuildOptions rebuild;         // the structure
  bool smallest_handoff = false;  // the costs: SmallestHandoffs instead of the recorded ones
  bool compare_variants = true;   // also the naive replay and the replay with the smallest hand-off latency
};

// A measured time and the simulated one.
struct TimePair {
  double measured_us = 0;
  double simulated_us = 0;
  // (simulated - measured) / measured; 0 where nothing was measured.
  [[nodiscard]] double error() const {
    return measured_us > 0 ? (simulated_us - measured_us) / measured_us : 0;
  }
};

// Absolute errors of start times.
struct ErrorSpread {
  std::uint64_t n = 0;
  double median_us = 0;
  double p95_us = 0;
  double max_us = 0;
};
// Quantiles by the nearest rank; `errors_us` are absolute.
[[nodiscard]] ErrorSpread error_spread(std::vector<double> errors_us);

struct ReplayedRank {
  RankClassId rank_class;
  std::int32_t rank = 0;
  Interval simulated_step;  // on the clock of the timeline
  TimePair step;            // length of the step
  TimePair gpu_window;      // step start to the last GPU end of work launched in it
  // Time in the simulated step in which the thread that ends it does nothing: all of it comes out of
  // dependencies.
  double simulated_wait_us = 0;
  ErrorSpread kernel_start;  // GPU work launched in the step, relative to the step's start
};

// The step off by more than 2 %, or the starts of its GPU work (95th percentile) by more than 1 % of the step: a
// what-if on such a replay says little.
[[nodiscard]] bool is_far_off(const ReplayedRank& rank);

// What one rank waited in one collective for the others: longer than the shortest stay of all.
struct CollectiveWait {
  CollectiveId collective;
  RankClassId rank_class;
  double recorded_us = 0;
  double simulated_us = 0;
  // Within 5 % + 20 us.
  [[nodiscard]] bool agrees() const;
};

// The same traces with other rules, scored only.
struct ReplayVariant {
  std::string name;                  // "naive", "smallest_handoff"
  std::vector<TimePair> step;        // [rank class]
  std::vector<TimePair> gpu_window;  // [rank class]
  TimePair global_window;
};

// How close a simulation of a rebuilt program comes to its record.
struct ReplayScores {
  Timeline timeline;
  std::vector<ReplayedRank> ranks;  // [rank class]
  TimePair global_window;           // earliest step start to the last end of a step or its GPU work
  Interval measured_window, simulated_window;    // when it is; no rank: from infinity to minus infinity
  ErrorSpread kernel_start;                      // of all ranks
  std::vector<CollectiveWait> collective_waits;  // collectives of two ranks and more

  // "The step" of a job: the longest of all ranks, each from its own begin to its own end.
  [[nodiscard]] double longest_step_us() const;
};
// One sentence where ranks are far off their record (is_far_off), with what is not explained of the worst. `scores`: of
// the record's own costs.
[[nodiscard]] std::optional<std::string> far_off_warning(const RecordedProgram& recorded,
                                                         const ReplayScores& scores);
// Under changed costs or start offsets too.
[[nodiscard]] Result<ReplayScores> score_replay(const RecordedProgram& recorded, const Costs& costs);

struct Replay : ReplayScores {
  RecordedProgram recorded;
  Costs costs{recorded.program};        // of `timeline`
  std::vector<ReplayVariant> variants;  // without those that could not be built; `recorded.notes` says which
};

[[nodiscard]] Result<Replay> replay(std::span<const RecordedInput> inputs, const ReplayOptions& options = {});

// The same of a Program that was made elsewhere (trace/pipeline_program.h); `options.rebuild` does not count.
[[nodiscard]] Result<Replay> replay_recorded(RecordedProgram program, const ReplayOptions& options = {});

// When the step of a rank runs in a timeline of its Program: as long after the rank's start as it was recorded, to the
// end of the task that ends it.
[[nodiscard]] Interval simulated_step(const RecordedProgram& recorded, const Timeline& timeline,
                                      RankClassId c);

// GPU work whose launch lies before the window: it enters at its recorded time. [task of the block]
[[nodiscard]] std::vector<bool> left_over_tasks(const Block& block);

}  // namespace stepcast

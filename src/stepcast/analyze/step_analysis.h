// The analysis of the times of a Program: the breakdown of a rank of each class, the collectives and the
// critical path. make_forecast() turns it into a Forecast. The contribution of left-out rounds of a pipeline
// is stored separately, so one analysis serves steps of any number of micro-batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stepcast/analyze/breakdown.h"
#include "stepcast/analyze/collective_list.h"
#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/forecast.h"
#include "stepcast/analyze/steady_rounds.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/interval.h"
#include "stepcast/program/program.h"

namespace stepcast {

// The times to analyse.
struct AnalysisInput {
  const FlatProgram& flat;
  const Costs& costs;
  const TaskTimes& times;                 // simulated or measured
  std::span<const Interval> windows;      // [rank class] the window of its step
  std::span<const double> rank_start_us;  // [rank class] when its lanes became free
  CriticalPathOptions path{};
  // Given if the Program leaves rounds out. Windows and times do not include them.
  const SteadyRounds* rounds = nullptr;
};

// The content of the analysis.
struct AnalysisOptions {
  // The number of collectives to list, those with most waiting and transfer; 0: all.
  std::size_t collectives = 256;
  bool path_steps = false;  // list every step of the path
  // Only this class, no collectives and no path. For tables of many forecasts.
  std::optional<RankClassId> only{};
  friend bool operator==(const AnalysisOptions&, const AnalysisOptions&) = default;
};

// The result. Values only.
struct StepAnalysis {
  // One rank of a class. For each round that is left out, `round` is added to `parts`.
  struct Rank {
    std::string name;
    std::optional<std::int64_t> recorded_rank;
    std::uint64_t n_ranks = 1;
    double start_offset_us = 0;
    RankBreakdown parts, round;
    // [lane] sum of the durations of its tasks, of the whole Program and of one round; 0 for CPU threads.
    std::vector<double> stream_us, round_stream_us;
  };
  // A part of the critical path: the whole Program's and that of one round.
  struct PathPart {
    std::string what;
    double us = 0, round_us = 0;
    std::uint64_t steps = 0, round_steps = 0;
  };
  // The critical path, as far as forecasts need it.
  struct Path {
    double length_us = 0;
    std::optional<std::uint32_t> ends_on;
    std::uint64_t n_steps = 0, round_steps = 0;
    std::vector<PathPart> by_class, by_rank, by_name;  // longest in `us` first
    std::vector<ForecastPathStep> steps;
  };
  std::vector<Rank> ranks;
  std::vector<std::string> groups;  // [GroupId] labels
  CollectiveList collectives;
  Path path;
};

// Analyses the times of a Program. Cannot fail. Uses two threads if there are enough tasks.
[[nodiscard]] StepAnalysis analyse(const AnalysisInput& input, const AnalysisOptions& options);

}  // namespace stepcast

// What the times of a Program come to: where they go on a rank of every class, its collectives, the critical path. A
// Forecast is made of it (make_forecast.h); what the rounds of a pipeline add that a Program leaves out stands beside it, so
// that one analysis serves steps of any number of micro-batches.
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

struct AnalysisInput {
  const FlatProgram& flat;
  const Costs& costs;
  const TaskTimes& times;                 // simulated or measured
  std::span<const Interval> windows;      // [rank class]: its step
  std::span<const double> rank_start_us;  // [rank class]: when its lanes became free
  CriticalPathOptions path{};
  // Of a Program that leaves rounds out; windows and times are without them.
  const SteadyRounds* rounds = nullptr;
};

struct AnalysisOptions {
  std::size_t collectives = 256;  // to list, those with most waiting and transfer; 0 is all
  bool path_steps = false;        // list every step of the path
  // This class alone, no collectives and no path: for rows of many forecasts.
  std::optional<RankClassId> only{};
  friend bool operator==(const AnalysisOptions&, const AnalysisOptions&) = default;
};

struct StepAnalysis {
  // A rank of a class. What `round` holds comes on top for each round that is left out.
  struct Rank {
    std::string name;
    std::optional<std::int64_t> recorded_rank;
    std::uint64_t n_ranks = 1;
    double start_offset_us = 0;
    RankBreakdown parts, round;
    std::vector<double> stream_us, round_stream_us;  // [lane] durations of its tasks; 0 for threads
  };
  struct PathPart {
    std::string what;
    double us = 0, round_us = 0;
    std::uint64_t steps = 0, round_steps = 0;
  };
  struct Path {
    double length_us = 0;
    std::optional<std::uint32_t> ends_on;
    std::uint64_t n_steps = 0, round_steps = 0;
    std::vector<PathPart> by_class, by_rank, by_name;  // those that are longest in `us` first
    std::vector<ForecastPathStep> steps;
  };
  std::vector<Rank> ranks;
  std::vector<std::string> groups;  // labels, [GroupId]
  CollectiveList collectives;
  Path path;
};

[[nodiscard]] StepAnalysis analyse(const AnalysisInput& input, const AnalysisOptions& options);

}  // namespace stepcast

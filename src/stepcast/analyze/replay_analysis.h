// Everything that is said about a replay, worked out once: where the simulated and the measured step spend
// their time, who waited for whom in which collective, the critical path.
#pragma once

#include <vector>

#include "stepcast/analyze/baseline.h"
#include "stepcast/analyze/breakdown.h"
#include "stepcast/analyze/collectives.h"
#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/result.h"
#include "stepcast/predict/replay.h"

namespace stepcast {

// Refers to the Replay it was made from.
struct ReplayAnalysis {
  const Replay* replay = nullptr;
  FlatProgram flat;
  Costs costs;
  TaskTimes simulated;
  TaskTimes measured;
  std::vector<RankBreakdown> simulated_ranks;  // [rank class], the window is the step
  std::vector<RankBreakdown> measured_ranks;
  std::vector<CollectiveOccurrence> simulated_collectives;
  std::vector<CollectiveOccurrence> measured_collectives;
  CriticalPath path;                        // to the latest end of a step
  StreamBaseline baseline;                  // the published baseline over all ranks
  std::vector<StreamBaseline> baseline_of;  // [rank class]
};

[[nodiscard]] Result<ReplayAnalysis> analyze_replay(const Replay& replay);

}  // namespace stepcast

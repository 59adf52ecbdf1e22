// Builds a Program from one step of a pipeline timeline.
//
//   STEPCAST_ASSIGN(const PipelineTimeline timeline, read_pipeline_timeline("timeline.json.gz"));
//   const LaunchDelays delays = learn_launch_delays(timeline, other_steps);
//   STEPCAST_ASSIGN(RecordedProgram recorded, pipeline_program(timeline, step, delays));
//
// The schedule is derived from the recorded order. An operator waits for the operator of its rank that ended
// last before it, and for the previous operator of its lane. Transfers that start at the same time on several
// ranks are one, which starts when the last member is ready. Each member keeps its recorded duration. The
// time between an operator and its predecessor is its launch delay, which is learned from other steps by the
// names of both.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/pipeline_timeline.h"

namespace stepcast {

// Launch delays in microseconds, by the names of an operator and its predecessor ("" at the start of the
// step).
using LaunchDelays = std::map<std::pair<std::string, std::string>, double>;

// Medians over the given steps. For a transfer, only the member that was ready last counts, since the others
// waited for it.
[[nodiscard]] LaunchDelays learn_launch_delays(const PipelineTimeline& timeline,
                                               std::span<const std::int64_t> steps);

// Without `delays`, every operator starts as soon as it can. Error: the step is not in the file.
[[nodiscard]] Result<RecordedProgram> pipeline_program(const PipelineTimeline& timeline, std::int64_t step,
                                                       const LaunchDelays& delays);

}  // namespace stepcast

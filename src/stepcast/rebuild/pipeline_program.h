// One step of a pipeline timeline as a Program.
//
//   STEPCAST_ASSIGN(const PipelineTimeline timeline, read_pipeline_timeline("timeline.json.gz"));
//   const LaunchDelays delays = learn_launch_delays(timeline, other_steps);
//   STEPCAST_ASSIGN(RecordedProgram recorded, pipeline_program(timeline, step, delays));
//
// The schedule is not in the file; it follows from the recorded order. An operator waits for what ended last before it
// on its rank, and for the operator before it on its lane; transfers that start at one moment on several ranks are one,
// and begin when its last member has come. Each member keeps its own duration. What lies between an operator and what
// it waited for is its launch delay; how long that is by the names of the two is learned from other steps.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/pipeline_timeline.h"

namespace stepcast {

// Microseconds by the names of an operator and of the one that it waited for ("" at the begin of the step).
using LaunchDelays = std::map<std::pair<std::string, std::string>, double>;

// Medians over these steps; of a transfer, the delay of the member that came last.
[[nodiscard]] LaunchDelays learn_launch_delays(const PipelineTimeline& timeline,
                                               std::span<const std::int64_t> steps);

// Without `delays`, every operator starts as soon as it can. Errors: a step that is not in the file.
[[nodiscard]] Result<RecordedProgram> pipeline_program(const PipelineTimeline& timeline, std::int64_t step,
                                                       const LaunchDelays& delays);

}  // namespace stepcast

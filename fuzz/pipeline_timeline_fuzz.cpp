// Any bytes as the timeline of a pipeline: an error, or operators in order whose every step becomes a Program of no more
// tasks than it has operators and ranks.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "stepcast/rebuild/pipeline_program.h"
#include "stepcast/trace/pipeline_timeline.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content{reinterpret_cast<const char*>(data), size};
  const auto timeline = stepcast::parse_pipeline_timeline(content, "fuzz");
  if (!timeline.ok()) {
    require(!timeline.error().message().empty());
    return 0;
  }
  require(!timeline->ops.empty() && !timeline->steps.empty());
  const stepcast::LaunchDelays delays = learn_launch_delays(*timeline, timeline->steps);
  for (const auto& [key, us] : delays) require(us >= 0);
  for (const std::int64_t step : timeline->steps) {
    const auto recorded = pipeline_program(*timeline, step, delays);
    if (!recorded.ok()) {
      require(!recorded.error().message().empty());
      continue;
    }
    require(recorded->program.expanded_task_count() <= timeline->ops.size() + timeline->ranks.size());
  }
  return 0;
}

#include "stepcast/sources/recorded_source.h"

#include <optional>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace stepcast {

std::string RecordedSource::device() const {
  for (const RecordedRank& rank : traces_.ranks)
    if (!rank.devices.empty() && !rank.devices.front().name.empty()) return rank.devices.front().name;
  return {};
}

void RecordedSource::forget_events() {
  for (RecordedRank& rank : traces_.ranks) {
    RecordedRank without{.file = std::move(rank.file), .rank = rank.rank, .world_size = rank.world_size};
    without.devices = std::move(rank.devices);
    rank = std::move(without);
  }
  for (std::optional<ExecutionTrace>& trace : traces_.execution_traces) trace.reset();
#ifdef __GLIBC__
  malloc_trim(0);  // names and lists of ranks lie between each other: the allocator would keep most pages
#endif
}

}  // namespace stepcast

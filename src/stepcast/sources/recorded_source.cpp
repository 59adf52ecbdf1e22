#include "stepcast/sources/recorded_source.h"

#include <optional>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace stepcast {

// The device of the first rank that names one. Later ranks are not compared with it.
std::string RecordedSource::device() const {
  for (const RecordedRank& rank : traces_.ranks)
    if (!rank.devices.empty() && !rank.devices.front().name.empty()) return rank.devices.front().name;
  return {};
}

Result<RecordedProgram> RecordedSource::last_program(const RebuildOptions& how, const Platform* platform) {
  Result<RecordedProgram> last = program(how, platform);
  for (std::size_t r = 0; r < traces_.ranks.size(); ++r) forget_events(r);
#ifdef __GLIBC__
  // Lists of events and names of all ranks are interleaved on the heap. Without trimming, glibc would keep
  // most of these pages and the memory would not return to the system.
  malloc_trim(0);
#endif
  return last;
}

// Keeps file, rank, world size and devices, which reports print, and drops events, names and the execution
// trace.
void RecordedSource::forget_events(std::size_t r) {
  RecordedRank& rank = traces_.ranks[r];
  RecordedRank without{.file = std::move(rank.file), .rank = rank.rank, .world_size = rank.world_size};
  without.devices = std::move(rank.devices);
  rank = std::move(without);
  if (r < traces_.execution_traces.size()) traces_.execution_traces[r].reset();
}

}  // namespace stepcast

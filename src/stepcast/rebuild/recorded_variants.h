// A recorded job under other rules, to compare replays with: made from its Program, not from its traces.
#pragma once

#include <map>

#include "stepcast/base/result.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

// One latency per sort of hand-off between CPU threads, the smallest over all ranks, instead of the recorded
// ones: the same structure with other delays.
class SmallestHandoffs {
 public:
  explicit SmallestHandoffs(const RecordedProgram& recorded);
  // Of the Program of `recorded`, or of a variant of it.
  [[nodiscard]] Costs costs(const Program& program) const;

 private:
  const DelayTable& delays_;
  std::map<DelayId, double> smallest_us_;
};

// Waits cut to their base cost: no edges between GPU work but the order of each stream, no edges from GPU work
// back to the CPU, no joint end of collectives (each rank's keeps its recorded duration). No delay can say
// that an edge is not there, so this is another structure: same tasks, fewer edges. Its facts count what is
// left. Nothing joins ranks any more: this is one of them, so that those of all need not stand together. Names are those of
// `recorded`.
[[nodiscard]] Result<RecordedProgram> without_gpu_dependencies(const RecordedProgram& recorded,
                                                               RankClassId c);

}  // namespace stepcast

// Variants of a recorded job under other rules, for comparison. They are made from its Program, not from its
// traces.
#pragma once

#include <map>

#include "stepcast/base/result.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

// Replaces the recorded hand-off latencies between CPU threads by the smallest one of each class over all
// ranks. The structure is unchanged, only delays differ.
class SmallestHandoffs {
 public:
  explicit SmallestHandoffs(const RecordedProgram& recorded);
  // Costs for the Program of `recorded`, or for a variant of it.
  [[nodiscard]] Costs costs(const Program& program) const;

 private:
  const DelayTable& delays_;
  std::map<DelayId, double> smallest_us_;
};

// One rank without dependencies on GPU work: waits have their base cost, GPU work is ordered only by its
// stream, no edge leads from GPU work to the CPU, and collectives keep the recorded duration of the rank.
// This is a different structure with the same tasks and fewer edges, since no delay can express a missing
// edge. The facts count the remaining edges. Ranks are independent of each other, so each one is a separate
// Program, which saves memory. Names are those of `recorded`.
[[nodiscard]] Result<RecordedProgram> without_gpu_dependencies(const RecordedProgram& recorded,
                                                               RankClassId c);

}  // namespace stepcast

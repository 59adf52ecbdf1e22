// Recorded ranks whose transfers overlap with computation, or whose host with the GPU, otherwise than they did.
//
//   STEPCAST_ASSIGN(RecordedProgram serial, with_overlap(std::move(recorded), OverlapChange::none));
//
// none      no computation overlaps a transfer of its rank: a transfer waits for all computation that had begun
//           when it was recorded to begin, and all later computation waits for it
// perfect   nothing but other transfers and the end of the step waits for a transfer
// host      no call of the host waits for the GPU; the end of the step waits for all GPU work
#pragma once

#include <cstdint>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

enum class OverlapChange : std::uint8_t { as_recorded, none, perfect, host };
[[nodiscard]] std::string_view to_string(OverlapChange change);

// Durations and measured times stay with their tasks. Errors: traces without transfers, or without calls that wait for the GPU;
// ranks whose transfers would wait for each other in a circle.
[[nodiscard]] Result<RecordedProgram> with_overlap(RecordedProgram recorded, OverlapChange change);

}  // namespace stepcast

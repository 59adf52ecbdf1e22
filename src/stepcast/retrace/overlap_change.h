// Changes the overlap of recorded ranks: of transfers with computation, or of the host with the GPU.
//
//   STEPCAST_ASSIGN(RecordedProgram serial, with_overlap(std::move(recorded), OverlapChange::none));
//
// none      no computation overlaps a transfer of its rank. A transfer waits for all computation that began before it
//           in the record, and all later computation waits for the transfer.
// perfect   only other transfers and the end of the step wait for a transfer.
// host      no host call waits for the GPU; the end of the step waits for all GPU work.
#pragma once

#include <cstdint>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

enum class OverlapChange : std::uint8_t { as_recorded, none, perfect, host };
// The name of the value in messages.
[[nodiscard]] std::string_view to_string(OverlapChange change);

// Keeps durations and measured times of all tasks. Errors: traces without transfers (none, perfect) or without calls that
// wait for the GPU (host); transfers of ranks that would wait for each other in a cycle.
[[nodiscard]] Result<RecordedProgram> with_overlap(RecordedProgram recorded, OverlapChange change);

}  // namespace stepcast

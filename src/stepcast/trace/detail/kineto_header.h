// The members of a profiler trace beside its list of events.
#pragma once

#include <cstdint>
#include <string_view>

#include "stepcast/base/result.h"
#include "stepcast/trace/recorded_rank.h"

namespace stepcast::detail {

struct KinetoHeader {
  std::int64_t base_time_ns = 0;  // added to every `ts`
};

// Takes what a member tells about the rank. Unknown members and members of unexpected shape are passed over:
// they describe the recording, no event depends on them. `baseTimeNanoseconds` is the exception, it must be a
// whole number. Behind `value` must be padding, see JsonCursor. Errors do not name the file.
[[nodiscard]] Status read_kineto_header(std::string_view key, std::string_view value, RecordedRank& rank,
                                        KinetoHeader& header);

}  // namespace stepcast::detail

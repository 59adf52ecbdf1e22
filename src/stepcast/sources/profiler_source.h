// Profiler traces in memory as a source, for the kinds of files that hold them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "stepcast/base/result.h"
#include "stepcast/sources/recorded_source.h"

namespace stepcast {

// `only_step`: the one whose events were kept. Zero `threads`: one per hardware thread.
[[nodiscard]] Result<std::unique_ptr<RecordedSource>> make_profiler_source(
    TraceSet traces, unsigned threads, std::optional<std::int64_t> only_step = {});

// The rank files of the listing, with its profiler traces where it has both.
[[nodiscard]] Result<std::unique_ptr<RecordedSource>> open_rank_files(const TraceListing& listing,
                                                                      const TraceSetOptions& options);

}  // namespace stepcast

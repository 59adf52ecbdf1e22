// Profiler traces in memory as a source. Used by the source kinds that read them: profiler traces and rank
// files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "stepcast/base/result.h"
#include "stepcast/sources/recorded_source.h"

namespace stepcast {

// `only_step`: the step with events in memory, if only one was kept while reading. `threads`: number of
// threads that build the indices; 0 uses one per hardware thread. Error: an index could not be built.
[[nodiscard]] Result<std::unique_ptr<RecordedSource>> make_profiler_source(
    TraceSet traces, unsigned threads, std::optional<std::int64_t> only_step = {});

// Opens the rank files of the listing, together with its profiler traces if it has both. Errors: files that
// cannot be read, rank files of different steps, a trace and a rank file of the same rank.
[[nodiscard]] Result<std::unique_ptr<RecordedSource>> open_rank_files(const TraceListing& listing,
                                                                      const TraceSetOptions& options);

}  // namespace stepcast

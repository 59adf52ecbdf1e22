// Runs independent pieces of work on several threads with a result that does not depend on how many.
//
//   std::vector<RecordedRank> ranks(files.size());
//   STEPCAST_TRY(parallel_for(files.size(), threads, [&](std::size_t i) -> Status {
//     STEPCAST_ASSIGN(ranks[i], read_kineto(files[i]));
//     return Ok{};
//   }));
#pragma once

#include <cstddef>
#include <functional>

#include "stepcast/base/result.h"

namespace stepcast {

// Calls work(0) ... work(n - 1), each once, from up to `threads` threads (0: one per hardware thread). If
// calls fail, the error of the lowest index is returned, as a plain loop would; calls with higher indices may
// not have been made. An exception (memory running out) reaches the caller. Who is asked to stop (stop.h) makes no
// more calls, and returns that error. A ProgressListener (progress.h) hears how many of eight or more calls are done.
[[nodiscard]] Status parallel_for(std::size_t n, unsigned threads,
                                  const std::function<Status(std::size_t index)>& work);

}  // namespace stepcast

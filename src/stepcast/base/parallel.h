// Runs independent work on several threads. The result does not depend on the number of threads.
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

// Calls work(0) ... work(n - 1), each once, on up to `threads` threads (0: one per hardware thread). If calls
// fail, the error with the lowest index is returned, as in a sequential loop; calls with higher indices may be
// left out. An exception in work() is rethrown here. After a stop request (stop.h) no further calls are made, and
// its error is returned. A ProgressListener (progress.h) is told the number of finished calls if n is at least 8.
[[nodiscard]] Status parallel_for(std::size_t n, unsigned threads,
                                  const std::function<Status(std::size_t index)>& work);

}  // namespace stepcast

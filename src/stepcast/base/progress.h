// Reports the progress of long work to a listener of the calling thread.
//
//   const ProgressListener listener = [&](std::uint64_t done, std::uint64_t total) { ... };  // from any thread
//   const ProgressScope scope{&listener};
//   const auto plan = session.plan(request);   // calls listener(done, total) from its parallel loops
#pragma once

#include <cstdint>
#include <functional>

namespace stepcast {

// May be called from any thread.
using ProgressListener = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Until the end of the block, the outermost parallel_for() of this thread reports to `listener`, which must
// outlive the scope. Null silences it. Scopes nest: the innermost one applies.
class ProgressScope {
 public:
  explicit ProgressScope(const ProgressListener* listener);
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;
  ~ProgressScope();

 private:
  const ProgressListener* before_;
};

// The listener of the innermost ProgressScope of this thread; null if there is none.
[[nodiscard]] const ProgressListener* current_progress();

}  // namespace stepcast

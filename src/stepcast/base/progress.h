// Says from inside of long work how far it is, to whoever asked for it on this thread.
//
//   const ProgressListener listener = [&](std::uint64_t done, std::uint64_t total) { ... };  // from any thread
//   const ProgressScope scope{&listener};
//   const auto plan = session.plan(request);   // its loops over many pieces tell how many are done
#pragma once

#include <cstdint>
#include <functional>

namespace stepcast {

using ProgressListener = std::function<void(std::uint64_t done, std::uint64_t total)>;

// From here to the end of the block the outermost parallel_for() of this thread tells `listener`, which outlives the scope; null
// keeps loops silent. Blocks may stand in each other: the innermost one holds.
class ProgressScope {
 public:
  explicit ProgressScope(const ProgressListener* listener);
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;
  ~ProgressScope();

 private:
  const ProgressListener* before_;
};

// Of the innermost ProgressScope; null where there is none.
[[nodiscard]] const ProgressListener* current_progress();

}  // namespace stepcast

#include "stepcast/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "stepcast/base/progress.h"
#include "stepcast/base/read_scope.h"
#include "stepcast/base/stop.h"

namespace stepcast {
namespace {

// The failure with the lowest index so far, from all threads. index() may be read without the lock: a stale,
// larger value only causes unnecessary calls.
class FirstFailure {
 public:
  [[nodiscard]] std::size_t index() const { return index_.load(std::memory_order_relaxed); }

  void report(std::size_t index, std::optional<Error> error, std::exception_ptr exception) {
    const std::lock_guard lock(mutex_);
    if (index >= index_.load(std::memory_order_relaxed)) return;
    index_.store(index, std::memory_order_relaxed);
    error_ = std::move(error);
    exception_ = std::move(exception);
  }

  Status take() {
    if (exception_) std::rethrow_exception(exception_);
    if (error_) return std::move(*error_);
    return Ok{};
  }

 private:
  std::atomic<std::size_t> index_{static_cast<std::size_t>(-1)};
  std::mutex mutex_;
  std::optional<Error> error_;
  std::exception_ptr exception_;
};

// Reports progress to the listener of this thread, and silences parallel_for() calls inside this one.
class Count {
 public:
  explicit Count(std::size_t n) : n_(n), listener_(n >= kFewest ? current_progress() : nullptr) {
    if (listener_ != nullptr) silence_.emplace(nullptr);
  }
  void add_one() {
    if (listener_ != nullptr) (*listener_)(done_.fetch_add(1, std::memory_order_relaxed) + 1, n_);
  }

 private:
  static constexpr std::size_t kFewest = 8;  // progress in fewer steps is not informative
  std::size_t n_;
  const ProgressListener* listener_;
  std::optional<ProgressScope> silence_;
  std::atomic<std::size_t> done_{0};
};

}  // namespace

Status parallel_for(std::size_t n, unsigned threads, const std::function<Status(std::size_t)>& work) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  // The calling thread is one of the workers.
  const std::size_t workers = std::min<std::size_t>(threads, n);
  Count count{n};
  if (workers <= 1) {
    for (std::size_t i = 0; i < n; ++i) {
      STEPCAST_TRY(not_stopped());
      STEPCAST_TRY(work(i));
      count.add_one();
    }
    return not_stopped();
  }

  FirstFailure failure;
  std::atomic<std::size_t> next{0};
  // Scopes are thread-local, so the workers enter those of the caller.
  const std::stop_token stop = current_stop();
  const auto* const folders = current_read_folders();
  const auto run = [&] {
    const StopScope scope{stop};
    const ReadScope reads{folders};
    for (;;) {
      const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
      // Indices are handed out in order, so all indices below a failed one were already taken by a thread and
      // will be finished.
      if (i >= n || i > failure.index()) return;
      try {
        Status status = not_stopped();
        if (status) status = work(i);
        if (status)
          count.add_one();
        else
          failure.report(i, std::move(status).error(), nullptr);
      } catch (...) {
        failure.report(i, std::nullopt, std::current_exception());
      }
    }
  };
  {
    std::vector<std::jthread> pool;
    pool.reserve(workers - 1);
    for (std::size_t t = 1; t < workers; ++t) pool.emplace_back(run);
    run();
  }
  STEPCAST_TRY(failure.take());
  return not_stopped();  // work() may have ended early because of the stop request without reporting it
}

}  // namespace stepcast

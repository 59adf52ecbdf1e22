#include "progress.h"

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "in_process.h"
#include "verbs.h"

namespace stepcast::cli {

ProgressLine::ProgressLine(std::string what) : what_(std::move(what)) {
  if (const VerbSink* sink = verb_sink()) {
    if (sink->listener->progress) {
      heard_by_ = &sink->listener->progress;
      (*heard_by_)(what_);
    }
    return;
  }
  if (::isatty(STDERR_FILENO) != 0) thread_ = std::thread{[this] { run(); }};
}

ProgressLine::~ProgressLine() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock{mutex_};
    ends_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void ProgressLine::say(std::string what) {
  const std::scoped_lock lock{mutex_};
  what_ = std::move(what);
  if (heard_by_ != nullptr) (*heard_by_)(what_);
}

std::function<void(std::uint64_t, std::uint64_t)> ProgressLine::reading(std::string what) {
  return [this, what = std::move(what)](std::uint64_t done, std::uint64_t total) {
    const bool all = done >= total;
    say(all ? what : fmt::format("{}: reading traces, {} %", what, 100 * done / total));
  };
}

void ProgressLine::run() {
  using std::chrono::milliseconds;
  constexpr milliseconds kPatience{2000}, kPeriod{500};
  const auto begin = std::chrono::steady_clock::now();
  std::size_t shown = 0;  // characters of the line that stands there
  std::unique_lock lock{mutex_};
  milliseconds wait = kPatience;
  while (!wake_.wait_for(lock, wait, [this] { return ends_; })) {
    const auto passed =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
    const std::string line = without_controls(fmt::format("{}: {} s", what_, passed.count()));
    // The cursor goes back, so that a result that is printed now begins where it should.
    fmt::print(stderr, "\r{:<{}}\r", line, shown);
    std::fflush(stderr);
    shown = line.size();
    wait = kPeriod;
  }
  if (shown > 0) fmt::print(stderr, "\r{:<{}}\r", "", shown);
  std::fflush(stderr);
}

}  // namespace stepcast::cli

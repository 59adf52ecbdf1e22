#include "progress.h"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "in_process.h"
#include "verbs.h"

namespace stepcast::cli {

namespace {

constexpr std::chrono::milliseconds kPatience{1000}, kPeriod{500};

}  // namespace

ProgressLine::ProgressLine(std::string what) : what_(std::move(what)) {
  const VerbSink* sink = verb_sink();
  if (sink != nullptr) {
    if (!sink->listener->progress) return;
    heard_by_ = &sink->listener->progress;
    (*heard_by_)(what_, std::nullopt);
  } else if (::isatty(STDERR_FILENO) == 0) {
    return;
  }
  loops_ = [this](std::uint64_t done, std::uint64_t total) { tell(Teller::loop, done, total); };
  scope_.emplace(&loops_);
  if (sink == nullptr) thread_ = std::thread{[this] { run(); }};
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
  if (heard_by_ != nullptr) (*heard_by_)(what_, std::nullopt);
}

std::function<void(std::uint64_t, std::uint64_t)> ProgressLine::reading(std::string what) {
  return [this, what = std::move(what)](std::uint64_t done, std::uint64_t total) {
    const bool all = done >= total;
    if (heard_by_ == nullptr) {
      say(all ? what : what + ": reading traces");
      tell(Teller::reading, done, total);
      return;
    }
    const std::scoped_lock lock{mutex_};
    what_ = all ? what : fmt::format("{}: reading traces, {} %", what, 100 * done / total);
    const double share = static_cast<double>(done) / static_cast<double>(total);
    (*heard_by_)(what_, all ? std::nullopt : std::optional{share});
  };
}

void ProgressLine::tell(Teller teller, std::uint64_t done, std::uint64_t total) {
  const std::scoped_lock lock{mutex_};
  if (teller == Teller::loop && teller_ == Teller::reading && share_) return;
  if (done >= total) {
    share_.reset();
    return;
  }
  const double share = static_cast<double>(done) / static_cast<double>(total);
  if (!share_ || share < *share_ || teller != teller_) share_begin_ = Clock::now();
  share_ = share;
  teller_ = teller;
  if (heard_by_ == nullptr || Clock::now() - heard_at_ < kPeriod) return;
  heard_at_ = Clock::now();
  (*heard_by_)(what_, share);
}

std::string progress_text(std::string_view what, double seconds, const std::optional<ProgressShare>& share) {
  std::string text = fmt::format("{}: {:.0f} s", what, std::floor(seconds));
  if (!share) return text;
  text += fmt::format(", {:.0f} %{}", std::floor(100 * share->done), share->of);
  constexpr double kLeastShare = 0.02, kLeastSeconds = 1;
  if (share->done >= kLeastShare && share->seconds >= kLeastSeconds)
    text += fmt::format(", {:.0f} s left", std::ceil(share->seconds * (1 - share->done) / share->done));
  return text;
}

void ProgressLine::run() {
  const auto begin = Clock::now();
  const auto since = [](Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  };
  std::size_t shown = 0;  // length of the line on the screen
  std::unique_lock lock{mutex_};
  std::chrono::milliseconds wait = kPatience;
  while (!wake_.wait_for(lock, wait, [this] { return ends_; })) {
    std::optional<ProgressShare> share;
    if (share_)
      share = ProgressShare{*share_, since(share_begin_), teller_ == Teller::loop ? " of this part" : ""};
    const std::string line = without_controls(progress_text(what_, since(begin), share));
    // Moves the cursor back, so that a result printed now begins at the start of the line.
    fmt::print(stderr, "\r{:<{}}\r", line, shown);
    std::fflush(stderr);
    shown = line.size();
    wait = kPeriod;
  }
  if (shown > 0) fmt::print(stderr, "\r{:<{}}\r", "", shown);
  std::fflush(stderr);
}

}  // namespace stepcast::cli

// How far the reading of several files is, as one share.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace stepcast {

// Bytes of the files (compressed where they are) that were read so far, and in total; called from several threads, one
// at a time.
using ProgressReport = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

// Outlives the readers that report to it.
class ReadProgress {
 public:
  ReadProgress(ProgressReport report, std::uint64_t total_bytes)
      : report_(std::move(report)), total_bytes_(total_bytes) {}
  ReadProgress(const ReadProgress&) = delete;
  ReadProgress& operator=(const ReadProgress&) = delete;

  // For ReadOptions::progress of one reader; empty where nobody wants to know.
  [[nodiscard]] ProgressReport of_file() {
    if (!report_) return {};
    return [this, before = std::uint64_t{0}](std::uint64_t done, std::uint64_t) mutable {
      const std::scoped_lock lock{mutex_};
      done_bytes_ += done - std::exchange(before, done);
      report_(done_bytes_, total_bytes_);
    };
  }

 private:
  ProgressReport report_;
  std::uint64_t total_bytes_;
  std::mutex mutex_;
  std::uint64_t done_bytes_ = 0;
};

}  // namespace stepcast

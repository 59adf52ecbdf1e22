// Progress of reading several files in parallel, as bytes read and total bytes.
//
//   ReadProgress progress{report, total_bytes};
//   read_kineto(file, {.progress = progress.of_file()});  // once per file, from any thread
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace stepcast {

// Called with the bytes read so far and in total (compressed size for compressed files). Calls come from
// several threads, but only one at a time.
using ProgressReport = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

// Combines the progress of several readers. Must outlive the readers that report to it.
class ReadProgress {
 public:
  // `total_bytes`: size of all files together. An empty `report` disables reporting.
  ReadProgress(ProgressReport report, std::uint64_t total_bytes)
      : report_(std::move(report)), total_bytes_(total_bytes) {}
  ReadProgress(const ReadProgress&) = delete;
  ReadProgress& operator=(const ReadProgress&) = delete;

  // The report function for one reader (ReadOptions::progress). Empty if reporting is disabled. Each call adds
  // the bytes that its file has advanced since the last call, so files can be read in any order.
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

// Shows on a terminal what takes long and since when. Silent if standard error is a pipe or file.
//
//   const ProgressLine progress{"validate kernels"};
//   ...                                  // after a second: "validate kernels: 3 s, 43 % of this part, 4 s left"
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "stepcast/base/progress.h"

namespace stepcast::cli {

// The finished share of a part (0 to 1), the seconds since its start, and the name of the part.
struct ProgressShare {
  double done = 0, seconds = 0;
  std::string_view of;  // " of this part", or nothing
};

// "plan on 64 GPUs: 3 s, 43 %, 4 s left". The remaining time is omitted while the share is small.
[[nodiscard]] std::string progress_text(std::string_view what, double seconds,
                                        const std::optional<ProgressShare>& share);

// A line on standard error, shown after a second and removed by the destructor. If the verb runs inside
// another program, that program receives the text and the share (in_process.h).
class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  // Sets the current activity: "validate: kernels, 3 of 7".
  void say(std::string what);
  // A progress function for reading traces: shows "replay: reading traces, 43 %", and `what` after the end.
  [[nodiscard]] std::function<void(std::uint64_t, std::uint64_t)> reading(std::string what);

 private:
  using Clock = std::chrono::steady_clock;
  // The source of the share: parallel loops (base/progress.h), replaced by reading, which is more precise.
  enum class Teller : std::uint8_t { loop, reading };

  void run();
  void tell(Teller teller, std::uint64_t done, std::uint64_t total);

  const std::function<void(std::string_view, std::optional<double>)>* heard_by_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string what_;
  bool ends_ = false;
  std::optional<double> share_;  // of the current part
  Clock::time_point share_begin_;
  Clock::time_point heard_at_ = Clock::now();  // when the other program heard of a share, or of the begin
  Teller teller_ = Teller::loop;
  ProgressListener loops_;
  std::optional<ProgressScope> scope_;
  std::thread thread_;  // not started if standard error is not a terminal
};

}  // namespace stepcast::cli

// Says on a terminal what takes long, and for how long already; silent in pipes and files.
//
//   const ProgressLine progress{"validate kernels"};
//   ...                                  // after two seconds: "validate kernels: 3 s, 43 % of this part, 4 s left"
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

// How much of a part is done, 0 to 1, since how many seconds, and what it is a share of.
struct ProgressShare {
  double done = 0, seconds = 0;
  std::string_view of;  // " of this part", or nothing
};

// "plan on 64 GPUs: 3 s, 43 %, 4 s left"; a share of which little is known tells no time.
[[nodiscard]] std::string progress_text(std::string_view what, double seconds,
                                        const std::optional<ProgressShare>& share);

// One line on standard error, from two seconds on and until this object is gone, which leaves nothing of it behind. Where
// the verb runs inside another program, that hears it instead (in_process.h).
class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  // What is done now: "validate: kernels, 3 of 7".
  void say(std::string what);
  // For reports of how far the reading of traces is: "replay: reading traces, 43 %", and `what` when all is read.
  [[nodiscard]] std::function<void(std::uint64_t, std::uint64_t)> reading(std::string what);

 private:
  using Clock = std::chrono::steady_clock;
  // Loops tell how far they are (base/progress.h) until reading does, which knows better.
  enum class Teller : std::uint8_t { loop, reading };

  void run();
  void tell(Teller teller, std::uint64_t done, std::uint64_t total);

  const std::function<void(std::string_view)>* heard_by_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string what_;
  bool ends_ = false;
  std::optional<double> share_;  // of the part that began then
  Clock::time_point share_begin_;
  Teller teller_ = Teller::loop;
  ProgressListener loops_;
  std::optional<ProgressScope> scope_;
  std::thread thread_;  // none where standard error is no terminal
};

}  // namespace stepcast::cli

// Says on a terminal what takes long, and for how long already; silent in pipes and files.
//
//   const ProgressLine progress{"validate kernels"};
//   ...                                  // after two seconds: "validate kernels: 3 s"
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace stepcast::cli {

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
  void run();

  const std::function<void(std::string_view)>* heard_by_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string what_;
  bool ends_ = false;
  std::thread thread_;  // none where standard error is no terminal
};

}  // namespace stepcast::cli

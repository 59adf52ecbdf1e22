// Cooperative cancellation of long work: the work regularly checks whether it should stop.
//
//   std::stop_source stop;                      // stop.request_stop(): from any thread
//   const StopScope scope{stop.get_token()};
//   const auto plan = session.plan(request);    // "interrupted", soon after the request
//
//   for (...) STEPCAST_TRY(not_stopped());      // in long work, every few milliseconds
#pragma once

#include <stop_token>

#include "stepcast/base/result.h"

namespace stepcast {

// Until the end of the block, this thread and the threads of its parallel_for() calls stop when `token`
// requests it. Scopes nest: the innermost one applies.
class StopScope {
 public:
  explicit StopScope(std::stop_token token);
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
  ~StopScope();

 private:
  std::stop_token token_;
  const std::stop_token* before_;
};

// The token of the innermost StopScope of this thread; without a scope, a token that never requests a stop.
[[nodiscard]] std::stop_token current_stop();

// Whether this thread should stop. Takes a few nanoseconds.
[[nodiscard]] bool is_stop_requested();

// After a stop request the error "interrupted", marked as not caused by the input.
[[nodiscard]] Status not_stopped();

}  // namespace stepcast

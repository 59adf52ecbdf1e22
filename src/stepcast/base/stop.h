// Ends work that takes long from outside: work asks now and then whether anybody wants it to end.
//
//   std::stop_source stop;                      // stop.request_stop(): from any thread
//   const StopScope scope{stop.get_token()};
//   const auto plan = session.plan(request);    // "interrupted", soon after the request
//
//   for (...) STEPCAST_TRY(not_stopped());      // in what takes long: every few milliseconds
#pragma once

#include <stop_token>

#include "stepcast/base/result.h"

namespace stepcast {

// From here to the end of the block this thread does its work until `token` asks it to stop; so do threads that
// parallel_for starts. Blocks may stand in each other: the innermost one holds.
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

// Of the innermost StopScope; one that never asks where there is none.
[[nodiscard]] std::stop_token current_stop();

// Whether somebody wants the work of this thread to end. Costs a few nanoseconds.
[[nodiscard]] bool is_stop_requested();

// The error "interrupted", which is no fault of the input, where is_stop_requested().
[[nodiscard]] Status not_stopped();

}  // namespace stepcast

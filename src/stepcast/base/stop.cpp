#include "stepcast/base/stop.h"

#include <utility>

namespace stepcast {
namespace {

// Token of the innermost StopScope of this thread.
thread_local const std::stop_token* innermost = nullptr;

}  // namespace

StopScope::StopScope(std::stop_token token)
    : token_(std::move(token)), before_(std::exchange(innermost, &token_)) {}

StopScope::~StopScope() { innermost = before_; }

std::stop_token current_stop() { return innermost != nullptr ? *innermost : std::stop_token{}; }

bool is_stop_requested() { return innermost != nullptr && innermost->stop_requested(); }

Status not_stopped() {
  if (is_stop_requested()) return Error{"interrupted"}.of_machine();
  return Ok{};
}

}  // namespace stepcast

#include "stepcast/base/progress.h"

#include <utility>

namespace stepcast {
namespace {

// Listener of the innermost ProgressScope of this thread.
thread_local const ProgressListener* innermost_listener = nullptr;

}  // namespace

ProgressScope::ProgressScope(const ProgressListener* listener)
    : before_(std::exchange(innermost_listener, listener)) {}

ProgressScope::~ProgressScope() { innermost_listener = before_; }

const ProgressListener* current_progress() { return innermost_listener; }

}  // namespace stepcast

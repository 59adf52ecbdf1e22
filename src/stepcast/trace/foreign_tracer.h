// Profilers with files that look like PyTorch traces of NVIDIA or AMD GPUs but have no GPU work that stepcast
// reads.
#pragma once

#include <optional>
#include <string_view>

#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

// Texts for the error message.
struct ForeignTracer {
  std::string_view called;  // "a trace of Intel GPUs (XPU)"
  std::string_view advice;
};

// Recognises the profiler by the categories of the skipped events. Empty if they occur in any trace.
[[nodiscard]] std::optional<ForeignTracer> foreign_tracer(const RecordedRank& rank);

}  // namespace stepcast

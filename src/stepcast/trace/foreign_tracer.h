// Profilers whose files look like traces of PyTorch on NVIDIA or AMD GPUs, and hold no GPU work that is read.
#pragma once

#include <optional>
#include <string_view>

#include "stepcast/trace/recorded_rank.h"

namespace stepcast {

struct ForeignTracer {
  std::string_view called;  // "a trace of Intel GPUs (XPU)"
  std::string_view advice;
};

// Told by the categories of the events that were left out; nothing where they are those of any trace.
[[nodiscard]] std::optional<ForeignTracer> foreign_tracer(const RecordedRank& rank);

}  // namespace stepcast

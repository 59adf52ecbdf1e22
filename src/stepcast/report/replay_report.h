// A replay as a person reads it, and as a program reads it (schema: docs/json.md).
#pragma once

#include <cstddef>
#include <string>

#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/predict/trace_set.h"

namespace stepcast {

struct ReplayReportOptions {
  std::size_t collectives = 12;    // rows; those with the most waiting
  std::size_t critical_path = 8;   // longest contributors
  std::size_t ops_per_thread = 0;  // JSON: 0 is all
  bool verbose = false;            // text: constants, streams and threads too
};

[[nodiscard]] std::string replay_text(const TraceSet& traces, const ReplayAnalysis& analysis,
                                      const ReplayReportOptions& options = {});
[[nodiscard]] std::string replay_json(const TraceSet& traces, const ReplayAnalysis& analysis,
                                      const ReplayReportOptions& options = {});

}  // namespace stepcast

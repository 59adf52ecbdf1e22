// A replay as a person reads it, and as a program reads it (docs/schemas/replay.json, docs/json.md).
#pragma once

#include <cstddef>
#include <string>

#include "stepcast/analyze/replay_analysis.h"

namespace stepcast {

struct ReplayReportOptions {
  std::size_t collectives = 12;   // rows; those with the most waiting
  std::size_t critical_path = 8;  // longest contributors
  bool verbose = false;           // text: constants, streams and threads too
};

[[nodiscard]] std::string replay_text(const ReplayAnalysis& analysis,
                                      const ReplayReportOptions& options = {});
[[nodiscard]] std::string replay_json(const ReplayAnalysis& analysis);

}  // namespace stepcast

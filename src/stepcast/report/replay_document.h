// A replay as a person reads it (report/document.h), and as a program reads it (docs/schemas/replay.json, docs/json.md).
#pragma once

#include <cstddef>
#include <string>

#include "stepcast/analyze/step_picture.h"
#include "stepcast/report/document.h"

namespace stepcast {

struct ReplayAnalysis;

struct ReplayReportOptions {
  std::size_t collectives = 12;            // rows; those with the most waiting
  std::size_t critical_path = 8;           // longest contributors
  bool verbose = false;                    // in a terminal constants, streams and threads, too
  const StepPictures* pictures = nullptr;  // for a page
  Shown made_for = Shown::everywhere;
};

[[nodiscard]] ReportDocument replay_document(const ReplayAnalysis& analysis,
                                             const ReplayReportOptions& options = {});
[[nodiscard]] std::string replay_json(const ReplayAnalysis& answer);
[[nodiscard]] std::string replay_schema();

}  // namespace stepcast

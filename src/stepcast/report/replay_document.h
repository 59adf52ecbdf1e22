// A replay as a document (report/document.h) and as JSON (docs/schemas/replay.json, docs/json.md).
#pragma once

#include <cstddef>
#include <string>

#include "stepcast/analyze/step_picture.h"
#include "stepcast/report/document.h"

namespace stepcast {

// The analysis comes from analyze_replay() (analyze/replay_analysis.h).
struct ReplayAnalysis;

// What a replay's document contains.
struct ReplayReportOptions {
  std::size_t collectives = 12;   // rows of collectives, those with most waiting
  std::size_t critical_path = 8;  // rows of the longest contributors
  // In a terminal, also print learned constants, streams and threads.
  bool verbose = false;
  const StepPictures* pictures = nullptr;  // for a page; null: none
  Shown made_for = Shown::everywhere;
};

// The document, the JSON object and its schema.
[[nodiscard]] ReportDocument replay_document(const ReplayAnalysis& analysis,
                                             const ReplayReportOptions& options = {});
[[nodiscard]] std::string replay_json(const ReplayAnalysis& answer);
[[nodiscard]] std::string replay_schema();

}  // namespace stepcast

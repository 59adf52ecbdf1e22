// What `stepcast inspect` prints of each kind of file.
#pragma once

#include <string>

#include "stepcast/report/inspect_answer.h"

namespace stepcast::detail {

[[nodiscard]] std::string inspect_text(const InspectedProfile& profile);
[[nodiscard]] std::string inspect_text(const InspectedExecutionTrace& trace);
[[nodiscard]] std::string inspect_text(const InspectedChakra& graph);
[[nodiscard]] std::string inspect_text(const InspectedTimeline& timeline);
[[nodiscard]] std::string inspect_text(const LoggedRun& run);
[[nodiscard]] std::string inspect_text(const InspectedTables& tables);
[[nodiscard]] std::string inspect_text(const InspectedIndices& indices);
[[nodiscard]] std::string inspect_text(const InspectedOperations& operations);
[[nodiscard]] std::string inspect_text(const UnreadableFile& file);

}  // namespace stepcast::detail

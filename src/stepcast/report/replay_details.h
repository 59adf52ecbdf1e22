// Parts of the report of a replay that say how far it is explained, and what each lane did: for whoever doubts it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/report/replay_report.h"

namespace stepcast {

// "1 event", "1,234 events".
[[nodiscard]] std::string counted(std::uint64_t n, std::string_view one, std::string_view many);

// Causes of idle time in the order of the columns; a pipeline only where there is one.
[[nodiscard]] std::vector<std::string> idle_causes(const std::vector<ForecastClass>& classes);
// Of the column of a cause; the first says what all of them are.
[[nodiscard]] std::string idle_heading(std::string_view cause, bool first);

// Shares of the measured step that nothing explains, and delays that are kept as recorded, by rank.
[[nodiscard]] std::string explained_text(const ReplayAnalysis& a);
// Lanes of the simulated step.
[[nodiscard]] std::string streams_text(const ReplayAnalysis& a);
[[nodiscard]] std::string threads_text(const ReplayAnalysis& a);
// What was learned from the traces, and the dependencies that were found, by origin.
[[nodiscard]] std::string constants_text(const ReplayAnalysis& a);

}  // namespace stepcast

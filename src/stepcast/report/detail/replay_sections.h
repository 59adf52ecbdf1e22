// Sections of a replay: what holds the step back, for a performance engineer, and how far it is explained, for whoever
// doubts it. Each adds itself to the document, where there is anything to say.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/report/document.h"

namespace stepcast::detail {

// 0 of nothing.
[[nodiscard]] inline double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }
// Its number; sorted as one.
[[nodiscard]] ReportCell rank_cell(const ReplayAnalysis& a, std::size_t rank_class);

// Causes of idle time in the order of the columns; a pipeline only where there is one.
[[nodiscard]] std::vector<std::string> idle_causes(const std::vector<ForecastClass>& classes);
// Of the column of a cause; the first says what all of them are.
[[nodiscard]] std::string idle_heading(std::string_view cause, bool first);

// What links achieve; who the others wait for; operators that differ across ranks, and those that the GPU waits for; what
// GPUs achieve. `verbose`: longer tables, and those by rank and class.
void add_groups(ReportDocument& document, const ReplayAnalysis& a);
void add_stragglers(ReportDocument& document, const ReplayAnalysis& a);
void add_operators(ReportDocument& document, const ReplayAnalysis& a, bool verbose);
void add_awaited(ReportDocument& document, const ReplayAnalysis& a, bool verbose);
void add_utilization(ReportDocument& document, const ReplayAnalysis& a, bool verbose);

// Shares of the measured step that nothing explains, and delays that are kept as recorded, by rank.
void add_explained(ReportDocument& document, const ReplayAnalysis& a);
// Lanes of the simulated step.
void add_stream_table(ReportDocument& document, const ReplayAnalysis& a);
void add_thread_table(ReportDocument& document, const ReplayAnalysis& a);
// What was learned from the traces, and the dependencies that were found, by origin.
void add_constants(ReportDocument& document, const ReplayAnalysis& a);

}  // namespace stepcast::detail

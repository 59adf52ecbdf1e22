// Sections of a replay's document: what delays the step (for performance engineers), and how well the replay
// explains the recorded times (to judge the replay). Each function adds its section, if there is anything to
// show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/report/document.h"

namespace stepcast::detail {

// part / whole in percent; 0 if whole is not above 0.
[[nodiscard]] inline double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }
// The number of a rank as a cell that sorts by number.
[[nodiscard]] ReportCell rank_cell(const ReplayAnalysis& a, std::size_t rank_class);

// The causes of idle time in the order of columns. "pipeline" and "between_steps" only if they occur.
[[nodiscard]] std::vector<std::string> idle_causes(const std::vector<ForecastClass>& classes);
// The heading of a cause's column. The first one also says that these columns are idle time.
[[nodiscard]] std::string idle_heading(std::string_view cause, bool first);

// What links achieve; which ranks the others wait for; operators that differ between ranks; operators that
// the GPU waits for; what GPUs achieve. `verbose`: longer tables in a terminal, and tables by rank and class.
void add_groups(ReportDocument& document, const ReplayAnalysis& a);
void add_stragglers(ReportDocument& document, const ReplayAnalysis& a);
void add_operators(ReportDocument& document, const ReplayAnalysis& a, bool verbose);
void add_awaited(ReportDocument& document, const ReplayAnalysis& a, bool verbose);
void add_utilization(ReportDocument& document, const ReplayAnalysis& a, bool verbose);

// By rank: the shares of the measured step without explanation, and the delays that are kept as recorded.
void add_explained(ReportDocument& document, const ReplayAnalysis& a);
// The streams and threads of the simulated step.
void add_stream_table(ReportDocument& document, const ReplayAnalysis& a);
void add_thread_table(ReportDocument& document, const ReplayAnalysis& a);
// The constants learned from the traces, and the number of dependencies by origin.
void add_constants(ReportDocument& document, const ReplayAnalysis& a);

}  // namespace stepcast::detail

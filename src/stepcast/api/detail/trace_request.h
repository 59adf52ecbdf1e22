// What a request for a prediction from traces asks for, read from its words.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/api/stepcast.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/sources/source_kind.h"

namespace stepcast::detail {

// All that stands in the request itself; platforms and traces are loaded apart. Errors: words and amounts that are none.
[[nodiscard]] Result<TracePredictionOptions> prediction_options(const PredictTraceRequest& request);
// "2=fpga.json"
[[nodiscard]] Result<std::pair<std::int32_t, std::string>> parse_rank_platform(const std::string& text);

// What a kind of traces may have to refuse.
[[nodiscard]] std::vector<TraceAsk> asks_of(const PredictTraceRequest& request);
[[nodiscard]] std::vector<TraceAsk> asks_of(const ReplayRequest& request);

// Where times come from that these traces do not hold.
void fit_to_kind(const SourceKind& kind, const PredictTraceRequest& request, TracePredictionOptions& how);

}  // namespace stepcast::detail

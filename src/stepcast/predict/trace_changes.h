// What TracePredictionOptions changes of a recorded step beyond factors: ranks on other platforms, other links, other
// work. Every change is a note, too.
#pragma once

#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/predict/recorded_prices.h"
#include "stepcast/trace/recorded_program.h"

namespace stepcast {

struct TracePredictionOptions;

// True if prices.low and prices.high no longer are the recorded times.
[[nodiscard]] bool changes_prices(const TracePredictionOptions& options);

// `how`: as the step was priced so far. `at_batch`: times between two recordings (batch_pair.h), or null. Errors: no
// platform to ask, a rank that is not in the traces, those of changed_work().
[[nodiscard]] Status apply_trace_changes(const RecordedProgram& recorded,
                                         const TracePredictionOptions& options, const RecordedPricing& how,
                                         const Costs* at_batch, RecordedPrices& prices,
                                         std::vector<std::string>& notes);

}  // namespace stepcast

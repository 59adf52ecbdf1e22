// What is in a trace file, for people and for scripts.
#pragma once

#include <string>

#include "stepcast/base/json_writer.h"
#include "stepcast/trace/operation_graph.h"
#include "stepcast/trace/pipeline_timeline.h"
#include "stepcast/trace/trace_summary.h"

namespace stepcast {

[[nodiscard]] std::string inspect_text(const RecordedRank& rank);
[[nodiscard]] std::string inspect_text(const ExecutionTrace& trace);
[[nodiscard]] std::string inspect_text(const OperationGraph& graph);
[[nodiscard]] std::string inspect_text(const PipelineTimeline& timeline);

// One object.
void inspect_json(const RecordedRank& rank, JsonWriter& json);
void inspect_json(const ExecutionTrace& trace, JsonWriter& json);
void inspect_json(const OperationGraph& graph, JsonWriter& json);
void inspect_json(const PipelineTimeline& timeline, JsonWriter& json);

}  // namespace stepcast

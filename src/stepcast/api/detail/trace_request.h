// What a request for a prediction from traces asks for, read from its words, and what traces of a kind cannot give.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "stepcast/api/stepcast.h"
#include "stepcast/predict/trace_prediction.h"

namespace stepcast::detail {

[[nodiscard]] Result<KernelTimeSource> kernel_time_source(const PredictTraceRequest& request);
[[nodiscard]] Result<HostTimeSource> host_time_source(const PredictTraceRequest& request);
// What of the request stands in options alone; platforms and traces are loaded apart.
[[nodiscard]] Status read_changes(const PredictTraceRequest& request, TracePredictionOptions& how);
// "2=fpga.json"
[[nodiscard]] Result<std::pair<std::int32_t, std::string>> parse_rank_platform(const std::string& text);

// What timelines of pipelines, Chakra traces and execution traces alone do not hold, flag by flag.
[[nodiscard]] Status check_pipeline(const PredictTraceRequest& request, const std::filesystem::path& file);
[[nodiscard]] Status check_chakra(const PredictTraceRequest& request);
[[nodiscard]] Status check_untimed(const PredictTraceRequest& request);

}  // namespace stepcast::detail

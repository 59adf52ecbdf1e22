// What predictions from traces and replays read alike: files, one step of them, spreads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/analyze/step_picture.h"
#include "stepcast/analyze/step_spread.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/output_file.h"
#include "stepcast/trace/trace_set.h"

namespace stepcast::detail {

// Where to write, nothing for no name. Looked at before the work begins, so that nobody waits in vain.
[[nodiscard]] Result<std::optional<OutputFile>> output_at(const std::filesystem::path& file,
                                                          const std::vector<std::filesystem::path>& inputs);

// What one step needs, unless something is learned from the others.
template <class Request>
TraceSetOptions trace_set_options(const Request& request, bool whole = false) {
  TraceSetOptions options{.ranks = request.ranks, .threads = request.threads};
  options.one_step = !whole && !request.spread.all_steps && request.spread.scenarios == 0;
  options.step = request.step;
  options.progress = request.progress;
  return options;
}

struct PipelineStep {
  RecordedProgram program;
  std::int64_t number = 0;
};

// The step asked for, else the last, of a timeline of a pipeline, with the launch delays of all others.
[[nodiscard]] Result<PipelineStep> pipeline_step(const TraceListing& listing,
                                                 std::optional<std::int64_t> asked,
                                                 const std::vector<std::int32_t>& ranks);

// The GPU that recorded, as the first trace that names one has it.
[[nodiscard]] std::string recorded_device(const TraceSet& traces);

[[nodiscard]] Result<SpreadOptions> spread_options(const SpreadRequest& request, unsigned threads);

// What ranks did over a step that was recorded once, at the times of now.
[[nodiscard]] StepPictures recorded_pictures(const FlatProgram& flat, const Costs& costs,
                                             const TaskTimes& times, const std::vector<Interval>& windows,
                                             const RecordedProgram& recorded);

// Inputs that are rebuilt step by step.
[[nodiscard]] Result<std::vector<RecordedInput>> indexed_inputs(const TraceSet& traces, unsigned threads);

}  // namespace stepcast::detail

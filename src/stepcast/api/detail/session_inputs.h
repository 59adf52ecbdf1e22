// Steps that predictions from traces and replays share: input files, options, spread, output files.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/step_picture.h"
#include "stepcast/analyze/step_series.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/interval.h"
#include "stepcast/base/output_file.h"
#include "stepcast/predict/predicted_step.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/sources/trace_set.h"

namespace stepcast::detail {

// The output file for `file`, checked before the work begins; nothing for an empty path. Errors: it cannot be
// written, or is one of `inputs`.
[[nodiscard]] Result<std::optional<OutputFile>> output_at(const std::filesystem::path& file,
                                                          const std::vector<std::filesystem::path>& inputs);

// The traces in `places`, restricted to the ranks of the request.
template <class Request>
Result<TraceListing> listing_of(const std::vector<std::filesystem::path>& places, const Request& request) {
  return list_traces(places, {.ranks = request.ranks, .ranks_from = request.ranks_from});
}

// Options for reading traces. Only one step is read, unless the request needs others: all steps, scenarios,
// or the shapes of another step.
template <class Request>
TraceSetOptions trace_set_options(const Request& request) {
  TraceSetOptions options{.ranks = request.ranks, .threads = request.threads};
  options.one_step = !request.spread.all_steps && request.spread.scenarios == 0;
  options.step = request.step;
  if constexpr (requires { request.shapes_of_step; })
    options.one_step = options.one_step && !request.shapes_of_step;
  options.progress = request.progress;
  return options;
}

// Input files of a described job, which outputs must not overwrite.
[[nodiscard]] std::vector<std::filesystem::path> files_of(const Job& job, const Platform& platform);

// One rank of every class: the others do the same. `forecast`: of the same step, for the counter of memory.
[[nodiscard]] Status write_step_timeline(const OutputFile& file, const PredictedStep& step,
                                         const Forecast& forecast);

// Options of the spread of a step. Errors: invalid jitter, jitter without scenarios.
[[nodiscard]] Result<SpreadOptions> spread_options(const SpreadRequest& request, unsigned threads);

// Pictures of a recorded step at predicted times: ranks and critical path. `steps`: the interval of the step
// for each rank class. `path`: where the critical path begins and ends.
[[nodiscard]] StepPictures recorded_pictures(const FlatProgram& flat, const Costs& costs,
                                             const TaskTimes& times, std::span<const Interval> steps,
                                             const RecordedProgram& recorded,
                                             const CriticalPathOptions& path);

}  // namespace stepcast::detail

#include "stepcast/api/detail/session_inputs.h"

#include <utility>

#include <fmt/format.h>

#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/base/parallel.h"
#include "stepcast/trace/pipeline_program.h"

namespace stepcast::detail {

Result<std::optional<OutputFile>> output_at(const std::filesystem::path& file,
                                            const std::vector<std::filesystem::path>& inputs) {
  if (file.empty()) return std::optional<OutputFile>{};
  STEPCAST_ASSIGN(OutputFile output, OutputFile::at(file, inputs));
  return std::optional<OutputFile>{std::move(output)};
}

Result<PipelineStep> pipeline_step(const TraceListing& listing, std::optional<std::int64_t> asked,
                                   const std::vector<std::int32_t>& ranks) {
  if (listing.timelines.size() > 1) {
    return Error::at(listing.name,
                     fmt::format("{} timelines of pipelines are here", listing.timelines.size()))
        .advice("name one of them: each holds all ranks of a job");
  }
  if (!ranks.empty()) {
    return Error::at(listing.timelines.front().string(), "a timeline of a pipeline is replayed as a whole")
        .advice("leave --ranks out");
  }
  STEPCAST_ASSIGN(const PipelineTimeline timeline, read_pipeline_timeline(listing.timelines.front()));
  PipelineStep step;
  step.number = asked.value_or(timeline.steps.back());
  std::vector<std::int64_t> others = timeline.steps;
  std::erase(others, step.number);
  STEPCAST_ASSIGN(step.program,
                  pipeline_program(timeline, step.number, learn_launch_delays(timeline, others)));
  step.program.notes.push_back(
      others.empty()
          ? std::string{"one step alone: launch delays are not known and count as 0"}
          : fmt::format("launch delays are medians of the other {} steps of the file", others.size()));
  return step;
}

std::string recorded_device(const TraceSet& traces) {
  for (const RecordedRank& rank : traces.ranks) {
    if (!rank.devices.empty() && !rank.devices.front().name.empty()) return rank.devices.front().name;
  }
  return {};
}

Result<SpreadOptions> spread_options(const SpreadRequest& request, unsigned threads) {
  SpreadOptions options;
  options.all_steps = request.all_steps;
  options.scenarios = static_cast<std::size_t>(request.scenarios);
  options.seed = request.seed;
  options.threads = threads;
  STEPCAST_ASSIGN(options.jitter, parse_jitter(request.jitter));
  if (options.jitter.any() && options.scenarios == 0) {
    return Error{"jitter is what straggler scenarios are drawn from"}.advice("say how many with --scenarios");
  }
  return options;
}

Result<std::vector<RecordedInput>> indexed_inputs(const TraceSet& traces, unsigned threads) {
  std::vector<RecordedInput> inputs = traces.inputs();
  STEPCAST_TRY(parallel_for(inputs.size(), threads, [&](std::size_t i) -> Status {
    inputs[i].index = index_trace(inputs[i]);
    return Ok{};
  }));
  return inputs;
}

StepPictures recorded_pictures(const FlatProgram& flat, const Costs& costs, const TaskTimes& times,
                               const std::vector<Interval>& windows, const RecordedProgram& recorded) {
  const std::vector<double>& starts = recorded.start_offset_us;
  return {.passes = {},
          .ranks = picture_of_ranks({flat, costs, times, windows, starts}),
          .path = picture_of_path(
              flat, critical_path(flat, times, costs, starts, to_end_of_step(recorded, flat, windows)))};
}

}  // namespace stepcast::detail

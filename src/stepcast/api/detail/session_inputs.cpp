#include "stepcast/api/detail/session_inputs.h"

#include <utility>

#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/make_step_picture.h"
#include "stepcast/analyze/replay_analysis.h"

namespace stepcast::detail {

Result<std::optional<OutputFile>> output_at(const std::filesystem::path& file,
                                            const std::vector<std::filesystem::path>& inputs) {
  if (file.empty()) return std::optional<OutputFile>{};
  STEPCAST_ASSIGN(OutputFile output, OutputFile::at(file, inputs));
  return std::optional<OutputFile>{std::move(output)};
}

Result<SpreadOptions> spread_options(const SpreadRequest& request, unsigned threads) {
  SpreadOptions options;
  options.all_steps = request.all_steps;
  options.scenarios = static_cast<std::size_t>(request.scenarios);
  options.seed = request.seed;
  options.threads = threads;
  STEPCAST_ASSIGN(options.jitter, parse_jitter(request.jitter));
  if (options.jitter.any() && options.scenarios == 0)
    return Error{"jitter is what straggler scenarios are drawn from"}.advice("say how many with --scenarios");
  return options;
}

StepPictures recorded_pictures(const FlatProgram& flat, const Costs& costs, const TaskTimes& times,
                               std::span<const ReplayedRank> ranks, const RecordedProgram& recorded) {
  std::vector<Interval> windows;
  for (const ReplayedRank& rank : ranks) windows.push_back(rank.simulated_step);
  const std::vector<double>& starts = recorded.start_offset_us;
  return {.passes = {},
          .ranks = picture_of_ranks({flat, costs, times, windows, starts}),
          .path = picture_of_path(
              flat, critical_path(flat, times, costs, starts, to_end_of_step(recorded, flat, windows)))};
}

}  // namespace stepcast::detail

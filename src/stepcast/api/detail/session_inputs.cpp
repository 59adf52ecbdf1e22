#include "stepcast/api/detail/session_inputs.h"

#include <utility>

#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/make_step_picture.h"
#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/base/units.h"
#include "stepcast/report/perfetto.h"

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
    return Error{"--jitter needs straggler scenarios"}.advice("give their number with --scenarios");
  return options;
}

StepPictures recorded_pictures(const FlatProgram& flat, const Costs& costs, const TaskTimes& times,
                               std::span<const Interval> steps, const RecordedProgram& recorded,
                               const CriticalPathOptions& path) {
  const std::vector<double>& starts = recorded.start_offset_us;
  return {.passes = {},
          .ranks = picture_of_ranks({flat, costs, times, steps, starts}),
          .path = picture_of_path(flat, critical_path(flat, times, costs, starts, path))};
}

Status write_step_timeline(const OutputFile& file, const PredictedStep& step, const Forecast& forecast) {
  Program program = step.program;
  for (std::size_t c = 0; c < program.rank_classes().size(); ++c) program.set_multiplicity(RankClassId{c}, 1);
  const FlatProgram flat{program};
  const TaskTimes times = TaskTimes::simulated(flat, step.timeline);
  TimelineInput input{.flat = flat, .costs = step.prices.costs, .times = times, .prices = &step.prices};
  if (forecast.memory && forecast.memory->stages.size() == program.rank_classes().size()) {
    for (const ForecastStageMemory& stage : forecast.memory->stages) {
      input.memory.push_back({.kept_bytes = (stage.total_GiB - stage.activations_GiB) * kGiB,
                              .activations_bytes = stage.activations_GiB * kGiB});
    }
  }
  return write_perfetto(file, input);
}

std::vector<std::filesystem::path> files_of(const Job& job, const Platform& platform) {
  std::vector<std::filesystem::path> files = platform.files;
  files.emplace_back(job.model);
  if (job.torchtitan) files.emplace_back(job.torchtitan->name);
  if (job.deepspeed) files.emplace_back(job.deepspeed->name);
  if (job.config) files.emplace_back(job.config->name);
  if (job.settings.expert_load) files.emplace_back(*job.settings.expert_load);
  return files;
}

}  // namespace stepcast::detail

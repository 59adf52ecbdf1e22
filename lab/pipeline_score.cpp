#include "lab/pipeline_score.h"

#include <array>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "stepcast/base/file.h"
#include "stepcast/base/json_value.h"
#include "stepcast/trace/pipeline_program.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr double kUsPerS = 1e6;

// "result-ST.json.gz" beside "timeline-ST.json.gz".
std::optional<JsonValue> published_results(const fs::path& timeline) {
  constexpr std::string_view kWord = "timeline";
  std::string name = timeline.filename().string();
  const std::size_t at = name.find(kWord);
  if (at == std::string::npos) return std::nullopt;
  const fs::path file = timeline.parent_path() / name.replace(at, kWord.size(), "result");
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  const Result<std::string> text = read_file(file, std::uint64_t{1} << 24);
  if (!text.ok()) return std::nullopt;
  Result<JsonValue> root = parse_json(*text, file.string());
  if (!root.ok()) return std::nullopt;
  return std::move(root).value();
}

Result<TimePair> replayed_step(const PipelineTimeline& timeline, std::int64_t step,
                               const LaunchDelays& delays) {
  STEPCAST_ASSIGN(const RecordedProgram recorded, pipeline_program(timeline, step, delays));
  STEPCAST_ASSIGN(const ReplayScores scores, score_replay(recorded, Costs{recorded.program}));
  return scores.global_window;
}

}  // namespace

Result<std::vector<PipelineStepScore>> score_pipeline(const fs::path& file) {
  STEPCAST_ASSIGN(const PipelineTimeline timeline, read_pipeline_timeline(file));
  const std::optional<JsonValue> results = published_results(file);
  const JsonValue* published = results ? results->find("step_t_nodelay") : nullptr;
  std::array<std::vector<std::int64_t>, 2> halves;
  for (std::size_t i = 0; i < timeline.steps.size(); ++i) halves[i % 2].push_back(timeline.steps[i]);
  const std::array<LaunchDelays, 2> delays_for{learn_launch_delays(timeline, halves[1]),
                                               learn_launch_delays(timeline, halves[0])};
  std::vector<PipelineStepScore> scores;
  for (std::size_t i = 0; i < timeline.steps.size(); ++i) {
    PipelineStepScore score{.step = timeline.steps[i]};
    STEPCAST_ASSIGN(score.delayed, replayed_step(timeline, score.step, delays_for[i % 2]));
    const JsonValue* time_s = published != nullptr ? published->find(std::to_string(score.step)) : nullptr;
    if (time_s != nullptr && time_s->is_number()) {
      STEPCAST_ASSIGN(const TimePair free, replayed_step(timeline, score.step, {}));
      score.without_delay = TimePair{time_s->number() * kUsPerS, free.simulated_us};
    }
    scores.push_back(score);
  }
  return scores;
}

}  // namespace stepcast
